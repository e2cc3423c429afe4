#include "runtime/data/token_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

template <class T>
auto Raw(const std::vector<int64_t>& ids) -> std::string {
  std::string text;
  for (const int64_t id : ids) {
    const T value = static_cast<T>(id);
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return text;
}

auto Bin(const std::vector<int64_t>& ids, int32_t magic = 20240520, int32_t version = 1, int64_t count = -1)
    -> std::string {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count < 0 ? static_cast<int32_t>(ids.size()) : static_cast<int32_t>(count);
  return std::string(reinterpret_cast<const char*>(header.data()), 1024) + Raw<uint16_t>(ids);
}

auto Encode(TokenFormat format, const std::vector<int64_t>& ids) -> std::string {
  switch (format) {
    case TokenFormat::Bin: return Bin(ids);
    case TokenFormat::U8: return Raw<uint8_t>(ids);
    case TokenFormat::U16: return Raw<uint16_t>(ids);
    case TokenFormat::U32: return Raw<uint32_t>(ids);
    // Two files each: tests/data/megatron.cpp.
    case TokenFormat::Megatron: return "";
  }
  return "";
}

auto Count(int64_t n) -> std::vector<int64_t> {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

class TokenReaderTest : public testing::Test {
 protected:
  auto Source(const std::vector<std::string>& contents, TokenFormat format = TokenFormat::U8) -> DataSource {
    DataSource source;
    source.format = format;
    source.order = SampleOrder::Sequential;
    source.vocab = 256;
    source.seq = 4;
    // Names of their own: an earlier reader may still hold files open.
    ++num_sources_;
    std::vector<std::string>& files = source.sources.emplace_back().files;
    for (size_t i = 0; i < contents.size(); ++i) {
      files.push_back(folder_ / fmt::format("{}_tokens_{}.data", num_sources_, i));
      WriteText(files.back(), contents[i]);
    }
    return source;
  }
  auto ErrorOf(const DataSource& source) -> Error {
    auto reader = TokenReader::Open(source);
    EXPECT_FALSE(reader.ok());
    return reader.ok() ? Error{} : reader.error();
  }

  TemporaryFolder folder_;
  int num_sources_ = 0;
};

struct Sample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  friend auto operator==(const Sample&, const Sample&) -> bool = default;
};

auto Read(TokenReader& reader, Split split, int64_t index, int64_t seq = 4) -> Sample {
  Sample sample{std::vector<int32_t>(static_cast<size_t>(seq)), std::vector<int32_t>(static_cast<size_t>(seq))};
  const Status status = reader.ReadSample(split, index, sample.tokens.data(), sample.targets.data(), 1);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return sample;
}

TEST_F(TokenReaderTest, SampleIsSeqIdsAndTheirNext) {
  for (const TokenFormat format : {TokenFormat::Bin, TokenFormat::U8, TokenFormat::U16, TokenFormat::U32}) {
    auto reader = TokenReader::Open(Source({Encode(format, Count(21))}, format));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ((*reader)->num_tokens(), 21);
    EXPECT_EQ((*reader)->num_train_samples(), 5);
    EXPECT_EQ(Read(**reader, Split::Train, 0), (Sample{{0, 1, 2, 3}, {1, 2, 3, 4}}));
    EXPECT_EQ(Read(**reader, Split::Train, 4), (Sample{{16, 17, 18, 19}, {17, 18, 19, 20}}));
    // The next epoch begins again.
    EXPECT_EQ(Read(**reader, Split::Train, 5), Read(**reader, Split::Train, 0));
  }
}

TEST_F(TokenReaderTest, CountsSamplesByTheirLastTarget) {
  // 20 tokens: sample 4 would need token 20.
  auto reader = TokenReader::Open(Source({Raw<uint8_t>(Count(20))}));
  EXPECT_EQ((*reader)->num_train_samples(), 4);
}

TEST_F(TokenReaderTest, FilesAreOneStream) {
  // Pieces of all sizes, an empty file among them: samples run on from one into the next.
  const std::string all = Raw<uint8_t>(Count(41));
  auto whole = TokenReader::Open(Source({all}));
  auto cut = TokenReader::Open(Source({all.substr(0, 1), all.substr(1, 6), "", all.substr(7, 2), all.substr(9)}));
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  ASSERT_EQ((*cut)->num_train_samples(), 10);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(Read(**cut, Split::Train, i), Read(**whole, Split::Train, i)) << i;
  }
}

TEST_F(TokenReaderTest, EvalSplitIsTheEnd) {
  DataSource source = Source({Raw<uint8_t>(Count(40))});
  source.eval_tokens = 13;
  auto reader = TokenReader::Open(source);
  EXPECT_EQ((*reader)->num_train_samples(), 6);
  EXPECT_EQ((*reader)->num_eval_samples(), 3);
  EXPECT_EQ(Read(**reader, Split::Train, 5), (Sample{{20, 21, 22, 23}, {21, 22, 23, 24}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 0), (Sample{{27, 28, 29, 30}, {28, 29, 30, 31}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 2), (Sample{{35, 36, 37, 38}, {36, 37, 38, 39}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 3), (Sample{{0, 0, 0, 0}, {-1, -1, -1, -1}}));
}

TEST_F(TokenReaderTest, ShuffledEpochsHoldEverySampleOnce) {
  DataSource source = Source({Raw<uint8_t>(Count(201))});
  source.order = SampleOrder::Shuffled;
  source.seed = 9;
  auto reader = TokenReader::Open(source);
  std::vector<std::vector<int32_t>> epochs(2);
  for (int64_t i = 0; i < 100; ++i) {
    const Sample sample = Read(**reader, Split::Train, i);
    EXPECT_EQ(sample.targets[0], sample.tokens[0] + 1);
    epochs[static_cast<size_t>(i / 50)].push_back(sample.tokens[0]);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (const auto& epoch : epochs) {
    EXPECT_EQ(std::set<int32_t>(epoch.begin(), epoch.end()).size(), 50U);
  }
}

TEST_F(TokenReaderTest, StrideMakesSequenceMajor) {
  auto reader = TokenReader::Open(Source({Raw<uint8_t>(Count(21))}));
  std::vector<int32_t> tokens_SB(8, -9);
  std::vector<int32_t> targets_SB(8, -9);
  for (int64_t b = 0; b < 2; ++b) {
    ASSERT_TRUE((*reader)->ReadSample(Split::Train, b, tokens_SB.data() + b, targets_SB.data() + b, 2).ok());
  }
  EXPECT_EQ(tokens_SB, (std::vector<int32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(targets_SB, (std::vector<int32_t>{1, 5, 2, 6, 3, 7, 4, 8}));
}

class TargetsTest : public TokenReaderTest {
 protected:
  /// A head whose targets are `ids`, written as u16.
  auto Head(const std::string& name, int64_t vocab, const std::vector<int64_t>& ids) -> TargetHead {
    const std::string path = folder_ / (name + ".targets");
    WriteText(path, Raw<uint16_t>(ids));
    return {.name = name, .vocab = vocab, .files = {path}};
  }
};

// Aligned with the tokens: what stands in a token's place is what the position before it is to predict.
TEST_F(TargetsTest, StandInTheTokensPlaces) {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < 21; ++i) {
    targets.push_back(i % 3 == 0 ? 65535 : 100 + i);
  }
  TokenReader::Heads heads;
  const HeadId head = heads.Add(Head("image", 121, targets));
  DataSource source = Source({Raw<uint16_t>(Count(21))}, TokenFormat::U16);
  source.eval_tokens = 5;
  auto made = TokenReader::Open(source, heads);
  ASSERT_TRUE(made.ok()) << made.error().message;
  TokenReader& reader = **made;
  std::vector<int32_t> tokens(8, -7);
  std::vector<int32_t> read(8, -7);
  ASSERT_TRUE(reader.ReadSample(Split::Train, 1, tokens.data(), read.data(), 2, head).ok());
  EXPECT_EQ(tokens, (std::vector<int32_t>{4, -7, 5, -7, 6, -7, 7, -7}));
  EXPECT_EQ(read, (std::vector<int32_t>{105, -7, -1, -7, 107, -7, 108, -7}));
  std::vector<int32_t> alone(8, -7);
  ASSERT_TRUE(reader.ReadTargets(Split::Train, 1, head, alone.data(), 2).ok());
  EXPECT_EQ(alone, read);
  ASSERT_TRUE(reader.ReadTargets(Split::Eval, 0, head, alone.data(), 2).ok());
  EXPECT_EQ(alone, (std::vector<int32_t>{117, -7, -1, -7, 119, -7, 120, -7}));
  ASSERT_TRUE(reader.ReadTargets(Split::Eval, 1, head, alone.data(), 2).ok());
  EXPECT_EQ(alone, (std::vector<int32_t>{-1, -7, -1, -7, -1, -7, -1, -7}));
}

TEST_F(TargetsTest, AreCheckedAsTokensAre) {
  const DataSource source = Source({Raw<uint16_t>(Count(21))}, TokenFormat::U16);
  const auto open = [&](const TargetHead& head) {
    TokenReader::Heads heads;
    heads.Add(head);
    return TokenReader::Open(source, heads);
  };
  const auto short_one = open(Head("short", 100, Count(20)));
  ASSERT_FALSE(short_one.ok());
  EXPECT_EQ(short_one.error().message,
            "the target files of head short hold 20 ids, and the token files 21: there is one for each token");
  const auto absent = open({.name = "absent", .vocab = 9, .files = {folder_ / "nowhere"}});
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("target file "), std::string::npos) << absent.error().message;
  auto high = open(Head("high", 3, Count(21)));
  ASSERT_TRUE(high.ok());
  std::vector<int32_t> read(4);
  const Status status = (*high)->ReadTargets(Split::Train, 0, HeadId{0}, read.data(), 1);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("id 3 at byte 6 (token 3 of the file), and the vocabulary of head high is 3"),
            std::string::npos)
      << status.error().message;
}

// Where the greatest number is none, the one below it is an id.
TEST_F(TargetsTest, GreatestNumberIsNone) {
  DataSource source = Source({Raw<uint8_t>(Count(21))});
  const std::string path = folder_ / "bytes.targets";
  std::vector<int64_t> ids(21, 254);
  ids[2] = 255;
  WriteText(path, Raw<uint8_t>(ids));
  TokenReader::Heads heads;
  const HeadId head = heads.Add({.name = "bytes", .vocab = 255, .files = {path}});
  auto reader = TokenReader::Open(source, heads);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  std::vector<int32_t> read(4);
  ASSERT_TRUE((*reader)->ReadTargets(Split::Train, 0, head, read.data(), 1).ok());
  EXPECT_EQ(read, (std::vector<int32_t>{254, -1, 254, 254}));
}

TEST_F(TargetsTest, FingerprintNamesThem) {
  const auto fingerprint = [&](const std::string& name, int64_t last) {
    std::vector<int64_t> ids = Count(21);
    ids.back() = last;
    TokenReader::Heads heads;
    heads.Add(Head(name, 100, ids));
    auto reader = TokenReader::Open(Source({Raw<uint16_t>(Count(21))}, TokenFormat::U16), heads);
    return reader.ok() ? (*reader)->Fingerprint() : reader.error().message;
  };
  EXPECT_NE(fingerprint("image", 1).find("; targets of image: 1 file, 21 tokens, xxh3-128 "), std::string::npos);
  EXPECT_NE(fingerprint("image", 1), fingerprint("image", 2));
  EXPECT_EQ(fingerprint("image", 1), fingerprint("image", 1));
}

TEST_F(TokenReaderTest, IdOutsideTheVocabularyNamesFileOffsetValue) {
  struct Case {
    TokenFormat format;
    int64_t id;
    std::string place;
  };
  for (const Case& row :
       {Case{TokenFormat::U8, 100, "id 100 at byte 7"}, Case{TokenFormat::U16, 65535, "id 65535 at byte 14"},
        Case{TokenFormat::Bin, 100, "id 100 at byte 1038"},
        Case{TokenFormat::U32, 4294967295, "id 4294967295 at byte 28"}}) {
    std::vector<int64_t> ids(21, 99);
    ids[7] = row.id;
    DataSource source = Source({Encode(row.format, ids)}, row.format);
    source.vocab = 100;
    auto reader = TokenReader::Open(source);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    std::vector<int32_t> ids_read(8);
    EXPECT_TRUE((*reader)->ReadSample(Split::Train, 0, ids_read.data(), ids_read.data() + 4, 1).ok());
    const Status status = (*reader)->ReadSample(Split::Train, 1, ids_read.data(), ids_read.data() + 4, 1);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ExitCode::RecipeRejected);
    for (const std::string& part : {std::string("tokens_0.data"), row.place, std::string("`model.vocab` is 100")}) {
      EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message << "\nlacks: " << part;
    }
  }
}

TEST_F(TokenReaderTest, BadFilesAreFoundBeforeTheFirstStep) {
  struct Case {
    std::string content;
    TokenFormat format;
    std::string says;
  };
  const std::string good = Bin(Count(21));
  for (const Case& row : {
           Case{"", TokenFormat::Bin,
                "has 0 bytes, so it has no llm.c header, which is 1024; if it holds raw ids, set "},
           Case{good.substr(0, 1023), TokenFormat::Bin, "has 1023 bytes, so it has no llm.c header"},
           Case{Bin(Count(21), 1), TokenFormat::Bin,
                "has no llm.c header: it begins with 1, not 20240520; if it holds raw ids, set `data.format` to u8"},
           Case{Bin(Count(21), 20240520, 2), TokenFormat::Bin, "bin version 2"},
           Case{good.substr(0, good.size() - 1), TokenFormat::Bin,
                "has 1065 bytes, its header says 21 tokens, which is 1066"},
           Case{good + "x", TokenFormat::Bin, "has 1067 bytes"},
           Case{Bin(Count(21), 20240520, 1, 2147483647), TokenFormat::Bin, "its header says 2147483647 tokens"},
           Case{std::string("abc"), TokenFormat::U16, "has 3 bytes, which is no multiple of 2"},
           Case{std::string("abcdef"), TokenFormat::U32, "has 6 bytes, which is no multiple of 4"},
           Case{"", TokenFormat::U8, "0 tokens in 1 file"},
           Case{"abcd", TokenFormat::U8,
                "4 tokens in 1 file, 0 of them held out by `data.eval_tokens`: 4 left to train on, and "
                "one sample takes 5"},
       }) {
    const Error error = ErrorOf(Source({row.content}, row.format));
    EXPECT_EQ(error.code, ExitCode::RecipeRejected);
    EXPECT_NE(error.message.find(row.says), std::string::npos) << error.message << "\nlacks: " << row.says;
  }
}

TEST_F(TokenReaderTest, HeaderReadAsRawIdsIsRefused) {
  // Sizes that are a multiple of each format's, and some that are not.
  for (const int64_t count : {0, 1, 20, 21}) {
    for (const TokenFormat format : {TokenFormat::U8, TokenFormat::U16, TokenFormat::U32}) {
      const Error error = ErrorOf(Source({Bin(Count(count))}, format));
      EXPECT_EQ(error.code, ExitCode::RecipeRejected);
      const std::string says = fmt::format(
          "has llm.c's header, which says {} tokens, as many as follow it; `data.format` is {}", count, ToText(format));
      EXPECT_NE(error.message.find(says), std::string::npos) << error.message << "\nlacks: " << says;
      EXPECT_NE(error.message.find("set `data.format` to bin"), std::string::npos) << error.message;
    }
  }
}

// Raw ids that have the magic alone, or with the version, or with a count that is not theirs.
TEST_F(TokenReaderTest, RawIdsThatBeginAsAHeaderAreRead) {
  for (const std::string& raw :
       {Bin(Count(20), 20240520, 2), Bin(Count(20), 20240520, 1, 21), Bin(Count(20), 20240520, 1, 0),
        Bin(Count(20), 20240521), Bin(Count(20)).substr(0, 1022)}) {
    auto reader = TokenReader::Open(Source({raw}, TokenFormat::U8));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ((*reader)->num_tokens(), std::ssize(raw));
  }
}

TEST_F(TokenReaderTest, NegativeCountIsRefused) {
  std::string content = Bin(Count(21));
  content[11] = '\x80';
  EXPECT_NE(ErrorOf(Source({content}, TokenFormat::Bin)).message.find("its header says -"), std::string::npos);
}

TEST_F(TokenReaderTest, TooFewTokensToHoldOut) {
  DataSource source = Source({Raw<uint8_t>(Count(40))});
  source.eval_tokens = 4;
  EXPECT_NE(ErrorOf(source).message.find("`data.eval_tokens` is 4, and one sample takes 5"), std::string::npos);
  source.eval_tokens = 38;
  EXPECT_NE(ErrorOf(source).message.find("38 of them held out by `data.eval_tokens`: 2 left"), std::string::npos);
}

TEST_F(TokenReaderTest, WhatIsNoFileIsRefusedWithoutWaiting) {
  DataSource source = Source({});
  source.sources.front().files = {folder_ / "absent"};
  EXPECT_NE(ErrorOf(source).message.find("absent: No such file or directory"), std::string::npos);
  source.sources.front().files = {folder_.path()};
  EXPECT_NE(ErrorOf(source).message.find("is a folder, not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  source.sources.front().files = {folder_ / "fifo"};
  EXPECT_NE(ErrorOf(source).message.find("is a device or pipe, not a regular file"), std::string::npos);
  source.sources.front().files = {"/dev/zero"};
  EXPECT_NE(ErrorOf(source).message.find("is a device or pipe"), std::string::npos);
  source.sources.front().files = {};
  EXPECT_NE(ErrorOf(source).message.find("no token files"), std::string::npos);
}

TEST_F(TokenReaderTest, FileCutShortWhileRunningIsACleanError) {
  const DataSource source = Source({Raw<uint8_t>(Count(200))});
  auto reader = TokenReader::Open(source);
  std::filesystem::resize_file(source.sources.front().files[0], 50);
  std::vector<int32_t> ids(8);
  EXPECT_TRUE((*reader)->ReadSample(Split::Train, 2, ids.data(), ids.data() + 4, 1).ok());
  const Status status = (*reader)->ReadSample(Split::Train, 40, ids.data(), ids.data() + 4, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::Environment);
  EXPECT_NE(status.error().message.find("it had 200 bytes when the run began"), std::string::npos)
      << status.error().message;
}

TEST_F(TokenReaderTest, ReplacedFileDoesNotDisturbARun) {
  const DataSource source = Source({Raw<uint8_t>(Count(41))});
  auto reader = TokenReader::Open(source);
  std::filesystem::remove(source.sources.front().files[0]);
  WriteText(source.sources.front().files[0], std::string(41, 'x'));
  EXPECT_EQ(Read(**reader, Split::Train, 1), (Sample{{4, 5, 6, 7}, {5, 6, 7, 8}}));
}

TEST_F(TokenReaderTest, FingerprintTellsContentsAndSizesNotNames) {
  const auto print_of = [&](const std::vector<std::string>& contents) {
    auto reader = TokenReader::Open(Source(contents));
    EXPECT_TRUE(reader.ok());
    return (*reader)->Fingerprint();
  };
  std::string large(1 << 20, 'a');
  const std::string print = print_of({large});
  EXPECT_TRUE(print.starts_with("1 file, 1048576 tokens, xxh3-128 ")) << print;
  EXPECT_EQ(print, print_of({large}));
  EXPECT_NE(print, print_of({large + "a"}));
  EXPECT_NE(print, print_of({large.substr(0, 1000), large.substr(1000)}));
  for (const size_t at : {size_t{0}, size_t{65535}, size_t{65536 * 5 + 17}, large.size() - 1}) {
    std::string changed = large;
    changed[at] = 'b';
    EXPECT_NE(print, print_of({changed})) << at;
  }
}

/// Two sources, weights 2 and 1: tokens 0 to 40 and 100 to 120, 10 and 5 samples; with 13 tokens held out of each, 6
/// and 1, and 3 each for evaluation.
class MixedReaderTest : public TokenReaderTest {
 protected:
  MixedReaderTest() {
    std::vector<int64_t> second = Count(21);
    std::for_each(second.begin(), second.end(), [](int64_t& id) { id += 100; });
    data_ = Source({Raw<uint8_t>(Count(41)), Raw<uint8_t>(second)});
    const std::vector<std::string> files = data_.sources.front().files;
    data_.sources = {{.name = "low", .weight = "2", .files = {files[0]}},
                     {.name = "high", .weight = "1", .files = {files[1]}}};
  }
  auto Open() -> std::unique_ptr<TokenReader> {
    auto reader = TokenReader::Open(data_, {}, {.samples_per_step = 3, .steps = 10});
    CHECK(reader.ok(), "{}", reader.error().message);
    return *std::move(reader);
  }

  DataSource data_;
};

TEST_F(MixedReaderTest, EachSourceHasEpochsOfItsOwn) {
  for (const SampleOrder order : {SampleOrder::Sequential, SampleOrder::Shuffled}) {
    data_.order = order;
    data_.seed = 3;
    const auto reader = Open();
    std::vector<std::vector<int32_t>> epochs;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      // Five steps are an epoch of both.
      std::vector<int32_t>& firsts = epochs.emplace_back();
      for (int64_t i = 0; i < 15; ++i) {
        const Sample sample = Read(*reader, Split::Train, epoch * 15 + i);
        firsts.push_back(sample.tokens[0]);
        for (size_t s = 0; s < 4; ++s) {
          EXPECT_EQ(sample.tokens[s], sample.tokens[0] + static_cast<int32_t>(s));
          EXPECT_EQ(sample.targets[s], sample.tokens[s] + 1);
        }
      }
      std::vector<int32_t> sorted = firsts;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted, (std::vector<int32_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 100, 104, 108, 112, 116}));
    }
    EXPECT_EQ(epochs[0] == epochs[1], order == SampleOrder::Sequential);
  }
}

TEST_F(MixedReaderTest, SequentialReadsEachSourceInOrder) {
  const auto reader = Open();
  std::vector<int32_t> firsts;
  for (int64_t i = 0; i < 9; ++i) {
    firsts.push_back(Read(*reader, Split::Train, i).tokens[0]);
  }
  EXPECT_EQ(firsts, (std::vector<int32_t>{0, 100, 4, 8, 104, 12, 16, 108, 20}));
}

TEST_F(MixedReaderTest, ShufflesByTheNameOfTheSource) {
  data_.order = SampleOrder::Shuffled;
  const auto firsts_of_low = [&] {
    const auto reader = Open();
    std::vector<int32_t> firsts;
    for (int64_t i = 0; i < 15; ++i) {
      const int32_t first = Read(*reader, Split::Train, i).tokens[0];
      if (first < 100) {
        firsts.push_back(first);
      }
    }
    return firsts;
  };
  const std::vector<int32_t> as_low = firsts_of_low();
  data_.sources[0].name = "lower";
  EXPECT_NE(firsts_of_low(), as_low);
}

TEST_F(MixedReaderTest, EvalSplitsStandOneBehindTheOther) {
  data_.eval_tokens = 13;
  const auto reader = Open();
  EXPECT_EQ(reader->num_train_samples(), 7);
  EXPECT_EQ(reader->num_eval_samples(), 6);
  EXPECT_EQ(Read(*reader, Split::Eval, 0), (Sample{{28, 29, 30, 31}, {29, 30, 31, 32}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 2), (Sample{{36, 37, 38, 39}, {37, 38, 39, 40}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 3), (Sample{{108, 109, 110, 111}, {109, 110, 111, 112}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 5), (Sample{{116, 117, 118, 119}, {117, 118, 119, 120}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 6), (Sample{{0, 0, 0, 0}, {-1, -1, -1, -1}}));
}

TEST_F(MixedReaderTest, SaysWhatItIsAndWhatTheRunTakes) {
  const auto reader = Open();
  const std::vector<std::string> fingerprints = reader->SourceFingerprints();
  ASSERT_EQ(fingerprints.size(), 2U);
  EXPECT_NE(fingerprints[0].find("1 file, 41 tokens, xxh3-128 "), std::string::npos) << fingerprints[0];
  EXPECT_EQ(reader->Fingerprint(), "low: " + fingerprints[0] + "; high: " + fingerprints[1]);
  Read(*reader, Split::Train, 17);
  const auto uses = reader->CountRun();
  ASSERT_TRUE(uses.ok());
  ASSERT_EQ(uses->size(), 2U);
  EXPECT_EQ((*uses)[0].samples, 20);
  EXPECT_EQ((*uses)[0].epoch_samples, 10);
  EXPECT_EQ((*uses)[1].name, "high");
  EXPECT_EQ((*uses)[1].samples, 10);
  EXPECT_EQ((*uses)[1].epoch_samples, 5);
  auto plain = TokenReader::Open(Source({Raw<uint8_t>(Count(41))}));
  EXPECT_TRUE((*plain)->CountRun()->empty());
}

TEST_F(MixedReaderTest, FaultsNameTheSource) {
  const auto error_of = [&] {
    const auto reader = TokenReader::Open(data_, {}, {.samples_per_step = 3, .steps = 10});
    return reader.ok() ? std::string("none") : reader.error().message;
  };
  data_.eval_tokens = 20;
  EXPECT_NE(error_of().find("source high: 21 tokens in 1 file, 20 of them held out"), std::string::npos) << error_of();
  data_.eval_tokens = 0;
  data_.sources[1].weight = "2 - step";
  {
    // Found when the step is reached, and before the first step by who counts the run.
    const auto reader = Open();
    EXPECT_FALSE(reader->CountRun().ok());
    std::vector<int32_t> ids(8);
    const Status status = reader->ReadSample(Split::Train, 9, ids.data(), ids.data() + 4, 1);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("the weight of high at step 3 is -1"), std::string::npos)
        << status.error().message;
  }
  data_.sources[1].files = {};
  EXPECT_NE(error_of().find("source high: no token files: `data.source.tokens` is empty"), std::string::npos)
      << error_of();
  data_.sources[1].files = {folder_ / "absent"};
  EXPECT_NE(error_of().find("`data.source.tokens` is relative to the recipe's folder"), std::string::npos)
      << error_of();
}

}  // namespace
}  // namespace shardc
