// Token files that are refused, and what happens to files while a run reads them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

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
           Case{"a text, and no file of ids", TokenFormat::Bin,
                "is text, and no ids; make ids of it by `tools/tokenize_te"},
           Case{"{\"text\": \"lines\"}\n", TokenFormat::Megatron, "or of its bytes by `shardc tokenize --bytes "},
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
    EXPECT_TRUE(reader.ok()) << reader.error().message;
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
