// Indexed datasets of Megatron-LM, which tests/data/write_megatron.py writes: they are read as they are, and what is
// not such a dataset is refused with what was found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "compiler/data/scan.h"
#include "runtime/data/token_reader.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class Megatron : public testing::Test {
 protected:
  /// Returns the ids that the program says it wrote.
  auto Write(const std::string& name, const std::string& type, const std::vector<std::string>& documents)
      -> std::vector<int32_t> {
    std::vector<std::string> command{"/usr/bin/env", "python3", SHARDC_SOURCE_DIR "/tests/data/write_megatron.py",
                                     folder_ / name, type};
    command.insert(command.end(), documents.begin(), documents.end());
    const Outcome outcome = RunProcess(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream words(outcome.out);
    std::vector<int32_t> ids;
    for (int32_t id = 0; words >> id;) {
      ids.push_back(id);
    }
    return ids;
  }
  auto Source(const std::vector<std::string>& names, int64_t vocab = 100) -> DataSource {
    DataSource source;
    source.format = TokenFormat::Megatron;
    source.order = SampleOrder::Sequential;
    source.vocab = vocab;
    source.seq = 3;
    TokenSource& only = source.sources.emplace_back();
    for (const std::string& name : names) {
      only.files.push_back(folder_ / name);
    }
    return source;
  }
  auto ErrorOf(const DataSource& source) -> std::string {
    const auto reader = TokenReader::Open(source);
    EXPECT_FALSE(reader.ok());
    return reader.ok() ? "" : reader.error().message;
  }
  /// Overwrites bytes of a file.
  auto Change(const std::string& name, int64_t offset, const std::string& bytes) -> void {
    std::string text = ReadText(folder_ / name);
    WriteText(folder_ / name, text.replace(static_cast<size_t>(offset), bytes.size(), bytes));
  }

  TemporaryFolder folder_;
};

TEST_F(Megatron, DocumentsFollowOneAnotherInEachType) {
  for (const char* type : {"uint8", "int16", "int32", "int64", "uint16"}) {
    SCOPED_TRACE(type);
    // Documents of several sequences, an empty one, and a second dataset after the first.
    const auto first = Write("a", type, {"1,2,3/4,5", "", "6"});
    const auto second = Write("b", type, {"7,8,9,10"});
    ASSERT_EQ(first, (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
    auto reader = TokenReader::Open(Source({"a.bin", "b.bin"}));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ((*reader)->num_tokens(), static_cast<int64_t>(first.size() + second.size()));
    std::vector<int32_t> tokens(3);
    std::vector<int32_t> targets(3);
    ASSERT_TRUE((*reader)->ReadSample(Split::Train, 1, tokens.data(), targets.data(), 1).ok());
    EXPECT_EQ(tokens, (std::vector<int32_t>{4, 5, 6}));
    EXPECT_EQ(targets, (std::vector<int32_t>{5, 6, 7}));
  }
}

// A long prompt before the first answer: bytes of 255, without any below 32 as ids have them.
TEST_F(Megatron, PlacesWithoutTargetsAreNoText) {
  const auto repeated = [](const std::string& id) {
    std::string ids = id;
    for (int i = 1; i < 600; ++i) {
      ids += "," + id;
    }
    return ids;
  };
  for (const auto& [type, none] : {std::pair("uint16", "65535"), std::pair("int32", "-1")}) {
    SCOPED_TRACE(type);
    Write("tokens", type, {repeated("7")});
    Write("targets", type, {repeated(none)});
    DataSource source = Source({"tokens.bin"});
    source.sources.front().targets = {folder_ / "targets.bin"};
    auto reader = TokenReader::Open(source);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    std::vector<int32_t> tokens(3);
    std::vector<int32_t> targets(3);
    ASSERT_TRUE((*reader)->ReadSample(Split::Train, 0, tokens.data(), targets.data(), 1).ok());
    EXPECT_EQ(targets, (std::vector<int32_t>{-1, -1, -1}));
  }
}

TEST_F(Megatron, NegativeAndLargeIdsAreNamed) {
  Write("a", "int32", {"1,2,3", "4,-5,6"});
  auto reader = TokenReader::Open(Source({"a.bin"}));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  std::vector<int32_t> ids(3);
  Status read = (*reader)->ReadSample(Split::Train, 0, ids.data(), ids.data(), 1);
  EXPECT_TRUE(read.ok()) << read.error().message;
  const auto scanned = ScanIds(ListFiles(Source({"a.bin"}), {}), TokenFormat::Megatron, {});
  ASSERT_FALSE(scanned.ok());
  EXPECT_THAT(scanned.error().message,
              HasSubstr("a.bin: id -5 at byte 16 (token 4 of the file), and `model.vocab` is 100"));
  Write("b", "int64", {"1,2,3,4294967296"});
  reader = TokenReader::Open(Source({"b.bin"}));
  read = (*reader)->ReadSample(Split::Train, 0, ids.data(), ids.data(), 1);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("id 4294967296 at byte 24"));
}

TEST_F(Megatron, WhatIsNoDatasetIsRefused) {
  Write("a", "uint16", {"1,2,3", "4,5,6"});
  EXPECT_THAT(ErrorOf(Source({"a.idx"})), HasSubstr("name the .bin of each dataset"));
  WriteText(folder_ / "alone.bin", std::string(8, '\1'));
  EXPECT_THAT(ErrorOf(Source({"alone.bin"})), HasSubstr("alone.idx: No such file"));
  const std::string index = ReadText(folder_ / "a.idx");
  struct Case {
    int64_t offset;
    std::string bytes;
    std::string part;
  };
  const Case cases[] = {
      {0, "MMIDIDY", "a.idx does not begin with MMIDIDX"},
      {9, std::string("\2", 1), "version 2 of Megatron's index"},
      {17, std::string("\7", 1), "ids of type 7"},
      {18, std::string("\3", 1), "not the size of an index of 3 sequences"},
      {18, std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "not the size of an index of 18446744073709551615"},
      // The length of the last sequence.
      {38, std::string("\2", 1), "its last sequence ends at byte 10, and the .bin beside it has 12 bytes"},
      // The length of the first one.
      {34, std::string("\4", 1), "sequence 1 has 3 ids from byte 6, and the one before it ends at byte 8"},
      {34, std::string("\xff\xff\xff\xff", 4), "sequence 0 has -1 ids"},
      // The documents, after 34 bytes, 2 lengths and 2 pointers: 0, 1, 2.
      {58, std::string("\1", 1), "entry 0 of the table of documents is sequence 1, expected 0"},
      {66, std::string("\x63", 1),
       "entry 1 of the table of documents is sequence 99, the one before it 0, and there are 2 sequences"},
      {66, std::string("\xfb\xff\xff\xff\xff\xff\xff\xff", 8), "entry 1 of the table of documents is sequence -5"},
      {74, std::string("\0", 1), "entry 2 of the table of documents is sequence 0, the one before it 1"},
      {74, std::string("\1", 1), "the last document ends before sequence 1, and there are 2 sequences"},
  };
  for (const Case& test : cases) {
    Change("a.idx", test.offset, test.bytes);
    EXPECT_THAT(ErrorOf(Source({"a.bin"})), HasSubstr(test.part));
    WriteText(folder_ / "a.idx", index);
  }
  WriteText(folder_ / "a.idx", index.substr(0, 20));
  EXPECT_THAT(ErrorOf(Source({"a.bin"})), HasSubstr("has 20 bytes, and the header of Megatron's index has 34"));
  // A file of another format says what it is.
  WriteText(folder_ / "a.idx", index);
  WriteText(folder_ / "a.bin", std::string(2000, '\1'));
  DataSource source = Source({"a.bin"});
  source.format = TokenFormat::Bin;
  EXPECT_THAT(ErrorOf(source), HasSubstr("an .idx lies beside it, so set `data.format` to megatron"));
}

TEST_F(Megatron, TargetsSayNoTargetByTheGreatestNumberOrMinusOne) {
  Write("tokens", "uint16", {"1,2,3,4"});
  Write("unsigned", "uint16", {"0,7,65535,8"});
  Write("signed", "int32", {"0,7,-1,8"});
  for (const char* name : {"unsigned.bin", "signed.bin"}) {
    IdVector<HeadId, TargetHead> heads;
    const HeadId head = heads.Add({.name = "image", .vocab = 9, .files = {folder_ / name}});
    auto reader = TokenReader::Open(Source({"tokens.bin"}), heads);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    std::vector<int32_t> targets(3);
    ASSERT_TRUE((*reader)->ReadTargets(Split::Train, 0, head, targets.data(), 1).ok());
    EXPECT_EQ(targets, (std::vector<int32_t>{7, -1, 8}));
  }
  IdVector<HeadId, TargetHead> heads;
  heads.Add({.name = "image", .vocab = 70000, .files = {folder_ / "unsigned.bin"}});
  const auto reader = TokenReader::Open(Source({"tokens.bin"}), heads);
  ASSERT_FALSE(reader.ok());
  EXPECT_THAT(reader.error().message, HasSubstr("whose greatest number, 65535, says that there is no target"));
}

}  // namespace
}  // namespace shardc
