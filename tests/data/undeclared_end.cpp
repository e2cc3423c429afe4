// An id that looks like an end is found by strong evidence, and nothing else is.
#include "compiler/data/undeclared_end.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class UndeclaredEndTest : public TokenReaderTest {
 protected:
  /// Returns what is found in files of documents of 20 ids of 3 to 99, each with `end` after it, or before it.
  auto Find(int64_t end, bool ends_files, int documents = 20, TokenFormat format = TokenFormat::U16)
      -> std::optional<UndeclaredEnd> {
    std::mt19937_64 random(4);
    std::vector<std::string> contents;
    for (int file = 0; file < 2; ++file) {
      std::vector<int64_t> ids;
      for (int document = 0; document < documents; ++document) {
        ids.insert(ids.end(), ends_files ? 0 : 1, end);
        for (int i = 0; i < 20; ++i) {
          ids.push_back(3 + static_cast<int64_t>(random() % 97));
        }
        ids.insert(ids.end(), ends_files ? 1 : 0, end);
      }
      contents.push_back(Encode(format, ids));
    }
    list_ = {.name = "", .purpose = {}, .range = {}, .paths = Source(contents, format).sources.front().files};
    const auto found = FindUndeclaredEnd(list_, format);
    CHECK(found.ok(), "{}", found.error().message);
    return *found;
  }

  FileList list_;
};

TEST_F(UndeclaredEndTest, GreatestAndLowestIdsAreFound) {
  for (const int64_t end : {100, 1000, 0, 2}) {
    for (const bool ends_files : {true, false}) {
      const auto found = Find(end, ends_files);
      ASSERT_TRUE(found.has_value()) << end;
      EXPECT_EQ(found->id, end);
      EXPECT_EQ(found->count, 40);
      EXPECT_EQ(found->ends_files, ends_files);
    }
  }
  EXPECT_THAT(
      ToText(*Find(1000, true), list_),
      HasSubstr("id 1000 looks like the end of documents, and the recipe does not say so: each of 2 token files "
                "ends with it, it is the greatest id there, and it occurs 40 times"));
}

TEST_F(UndeclaredEndTest, WeakEvidenceIsNone) {
  // An id with another use, as a full stop has, though each file ends with it.
  EXPECT_FALSE(Find(50, true).has_value());
  // Too few of them.
  EXPECT_FALSE(Find(1000, true, 7).has_value());
  EXPECT_TRUE(Find(1000, true, 8).has_value());
}

}  // namespace
}  // namespace shardc
