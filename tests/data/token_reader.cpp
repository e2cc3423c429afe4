#include "runtime/data/token_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
    for (size_t i = 0; i < contents.size(); ++i) {
      source.files.push_back(folder_ / fmt::format("{}_tokens_{}.data", num_sources_, i));
      WriteText(source.files.back(), contents[i]);
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
  for (size_t i = 0; i < CountOf<TokenFormat>(); ++i) {
    const auto format = static_cast<TokenFormat>(i);
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
           Case{"", TokenFormat::Bin, "has 0 bytes, fewer than the 1024 of a bin header"},
           Case{good.substr(0, 1023), TokenFormat::Bin, "has 1023 bytes, fewer than"},
           Case{Bin(Count(21), 1), TokenFormat::Bin, "begins with 1, a bin file with 20240520"},
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
  source.files = {folder_ / "absent"};
  EXPECT_NE(ErrorOf(source).message.find("absent: No such file or directory"), std::string::npos);
  source.files = {folder_.path()};
  EXPECT_NE(ErrorOf(source).message.find("is a folder, not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  source.files = {folder_ / "fifo"};
  EXPECT_NE(ErrorOf(source).message.find("is a device or pipe, not a regular file"), std::string::npos);
  source.files = {"/dev/zero"};
  EXPECT_NE(ErrorOf(source).message.find("is a device or pipe"), std::string::npos);
  source.files = {};
  EXPECT_NE(ErrorOf(source).message.find("no token files"), std::string::npos);
}

TEST_F(TokenReaderTest, FileCutShortWhileRunningIsACleanError) {
  const DataSource source = Source({Raw<uint8_t>(Count(200))});
  auto reader = TokenReader::Open(source);
  std::filesystem::resize_file(source.files[0], 50);
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
  std::filesystem::remove(source.files[0]);
  WriteText(source.files[0], std::string(41, 'x'));
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

}  // namespace
}  // namespace shardc
