// Where documents are: by Megatron's index and by an id that ends each, against what was written.
#include "compiler/data/document_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/data/token_reader_fixture.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class DocumentTableTest : public testing::Test {
 protected:
  /// Returns a list of new files with these bytes.
  auto List(const std::vector<std::string>& contents) -> FileList {
    FileList list{.name = "", .purpose = {}, .range = {.vocab = 100, .vocab_name = "`model.vocab`"}, .paths = {}};
    for (const std::string& bytes : contents) {
      list.paths.push_back(folder_ / fmt::format("{}.ids", num_files_++));
      WriteText(list.paths.back(), bytes);
    }
    return list;
  }
  auto Megatron(const std::vector<std::vector<std::string>>& files) -> FileList {
    FileList list{.name = "", .purpose = {}, .range = {.vocab = 100, .vocab_name = "`model.vocab`"}, .paths = {}};
    for (const std::vector<std::string>& documents : files) {
      const std::string name = folder_ / fmt::format("megatron{}", num_files_++);
      std::vector<std::string> command{"/usr/bin/env", "python3", SHARDC_SOURCE_DIR "/tests/data/write_megatron.py",
                                       name, "uint16"};
      command.insert(command.end(), documents.begin(), documents.end());
      EXPECT_EQ(RunProcess(command).status, 0);
      list.paths.push_back(name + ".bin");
    }
    return list;
  }

  TemporaryFolder folder_;
  int num_files_ = 0;
};

auto EndsOf(const ErrorOr<DocumentTable>& table) -> std::vector<int64_t> {
  EXPECT_TRUE(table.ok()) << table.error().message;
  std::vector<int64_t> ends;
  for (int64_t i = 0; table.ok() && i < table->num_documents(); ++i) {
    ends.push_back(table->IdsOf(i).end);
  }
  return ends;
}

TEST_F(DocumentTableTest, IndexHasDocuments) {
  const auto table =
      DocumentTable::Find(Megatron({{"1,2,3/4,5", "", "6", ""}, {"", "7,8", "9"}}), TokenFormat::Megatron, -1);
  EXPECT_EQ(EndsOf(table), (std::vector<int64_t>{5, 6, 8, 9}));
  EXPECT_EQ(table->num_empty(), 3);
  EXPECT_EQ(table->DocumentOf(4), 0);
  EXPECT_EQ(table->DocumentOf(5), 1);
  EXPECT_THAT(table->NameOf(3), HasSubstr("megatron1.bin: its document 1 (without the empty ones), of ids 2 to 2,"));
}

TEST_F(DocumentTableTest, IdEndsDocuments) {
  const std::vector<std::vector<int64_t>> files{{1, 2, 0, 0, 3}, {4, 0}, {}, {5}};
  for (const TokenFormat format : {TokenFormat::Bin, TokenFormat::U8, TokenFormat::U16, TokenFormat::U32}) {
    std::vector<std::string> contents;
    for (const std::vector<int64_t>& ids : files) {
      contents.push_back(Encode(format, ids));
    }
    const auto table = DocumentTable::Find(List(contents), format, 0);
    // Id 0 belongs to the document that it ends, and no document goes on in the next file.
    EXPECT_EQ(EndsOf(table), (std::vector<int64_t>{3, 4, 5, 7, 8}));
    EXPECT_THAT(table->NameOf(2), HasSubstr(": its document 2, of ids 4 to 4,"));
    EXPECT_THAT(table->NameOf(4), HasSubstr(": its document 0, of ids 0 to 0,"));
  }
}

TEST_F(DocumentTableTest, ThreadsFindSameDocuments) {
  std::mt19937_64 random(3);
  // More than two blocks of a MiB, and ends at their borders.
  std::vector<int64_t> ids(1'200'000);
  std::vector<int64_t> expected;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_end = random() % 700 == 0 || i == (1 << 19) - 1 || i == 1 << 19;
    ids[i] = is_end ? 7 : 8 + static_cast<int64_t>(random() % 90);
    if (is_end || i + 1 == ids.size()) {
      expected.push_back(static_cast<int64_t>(i) + 1);
    }
  }
  const FileList list = List({Encode(TokenFormat::U16, ids)});
  EXPECT_EQ(EndsOf(DocumentTable::Find(list, TokenFormat::U16, 7)), expected);
  EXPECT_EQ(EndsOf(DocumentTable::Find(list, TokenFormat::U16, 7, 4)), expected);
}

TEST_F(DocumentTableTest, UnknownEndsAreRefused) {
  const FileList list = List({Encode(TokenFormat::U8, {1, 2, 3})});
  const auto unset = DocumentTable::Find(list, TokenFormat::U8, -1);
  ASSERT_FALSE(unset.ok());
  EXPECT_EQ(unset.error().code, ExitCode::RecipeRejected);
  EXPECT_THAT(unset.error().message, HasSubstr("set `data.document_end` to the id that ends each"));
  // 258 is 2 in the lowest byte.
  for (const int64_t absent : {9, 258}) {
    const auto table = DocumentTable::Find(list, TokenFormat::U8, absent);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.error().code, ExitCode::RecipeRejected);
    EXPECT_THAT(table.error().message, HasSubstr(fmt::format("`data.document_end` is {}, and token file ", absent)));
  }
}

TEST_F(DocumentTableTest, DocumentsPastFileAreRefused) {
  const FileList list = Megatron({{"1,2", "3"}});
  const std::string index = list.paths.front().substr(0, list.paths.front().size() - 4) + ".idx";
  std::string bytes = ReadText(index);
  // The last entry of the table: sequence 2, of two.
  bytes[bytes.size() - 8] = 9;
  WriteText(index, bytes);
  const auto table = DocumentTable::Find(list, TokenFormat::Megatron, -1);
  ASSERT_FALSE(table.ok());
  EXPECT_THAT(table.error().message, HasSubstr("and there are 2 sequences"));
}

}  // namespace
}  // namespace shardc
