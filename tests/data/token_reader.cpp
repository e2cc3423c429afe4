// Samples of token files and of the targets beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

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

TEST_F(TokenReaderTest, EvalFilesAreTheEvalSplit) {
  DataSource source = Source({Raw<uint8_t>(Count(40))});
  const std::string without = (*TokenReader::Open(source))->Fingerprint();
  source.eval_files = {folder_ / "a.eval", folder_ / "b.eval"};
  source.eval_file_tokens = 13;
  WriteText(source.eval_files[0], Raw<uint8_t>({100, 101, 102}));
  WriteText(source.eval_files[1], Raw<uint8_t>({103, 104, 105, 106, 107, 108, 109, 110, 111, 112}));
  const auto reader = TokenReader::Open(source);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ((*reader)->num_train_samples(), 9);
  EXPECT_EQ((*reader)->num_eval_samples(), 3);
  EXPECT_EQ(Read(**reader, Split::Train, 8), (Sample{{32, 33, 34, 35}, {33, 34, 35, 36}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 0), (Sample{{100, 101, 102, 103}, {101, 102, 103, 104}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 2), (Sample{{108, 109, 110, 111}, {109, 110, 111, 112}}));
  EXPECT_EQ(Read(**reader, Split::Eval, 3), (Sample{{0, 0, 0, 0}, {-1, -1, -1, -1}}));
  EXPECT_TRUE((*reader)->Fingerprint().starts_with(without + "; evaluation: 2 files, 13 "));
  source.eval_file_tokens = 14;
  EXPECT_NE(ErrorOf(source).message.find("hold 13 ids, and they held 14 when the plan was made"), std::string::npos);
  WriteText(source.eval_files[1], "");
  source.eval_files[0] = folder_ / "none.eval";
  EXPECT_NE(ErrorOf(source).message.find("none.eval: No such file or directory; `data.eval` is relative"),
            std::string::npos);
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
  ASSERT_TRUE(high.ok()) << high.error().message;
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

}  // namespace
}  // namespace shardc
