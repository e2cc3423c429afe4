// Lists in sentences, numbers that are a whole text, and texts cut at their separators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/text/joined.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/split.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Listed, AllItemsUpToLimit) {
  EXPECT_EQ(Listed(std::vector<std::string>{}, 2), "");
  EXPECT_EQ(Listed(std::vector<std::string>{"a"}, 2), "a");
  EXPECT_EQ(Listed(std::vector<std::string>{"a", "b"}, 2), "a, b");
  EXPECT_EQ(Listed(std::vector<std::string>{"", "b"}, 2), ", b");
}

TEST(Listed, CountsItemsBeyondLimit) {
  const std::vector<int> items{1, 2, 3, 4};
  EXPECT_EQ(Listed(items, 2), "1, 2 and 2 more");
  EXPECT_EQ(Listed(items, 3, "; ", "; and "), "1; 2; 3; and 1 more");
}

TEST(ParseWhole, ReadsNumbers) {
  EXPECT_EQ(ParseWhole<int64_t>("-12"), -12);
  EXPECT_EQ(ParseWhole<double>("2.5e3"), 2500.0);
  EXPECT_TRUE(std::isinf(ParseWhole<double>("inf").value()));
}

TEST(ParseWhole, RefusesOtherTexts) {
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(ParseWhole<int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseWhole<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(ParseWhole<double>("1e999"), std::nullopt);
}

TEST(SplitText, KeepsEmptyParts) {
  EXPECT_THAT(SplitAt("", ","), ElementsAre(""));
  EXPECT_THAT(SplitAt("a", ","), ElementsAre("a"));
  EXPECT_THAT(SplitAt(",a,,b,", ","), ElementsAre("", "a", "", "b", ""));
  EXPECT_THAT(SplitAt("a, b,c", ", "), ElementsAre("a", "b,c"));
}

TEST(SplitText, LinesWithoutTheirEnds) {
  EXPECT_THAT(SplitLines(""), IsEmpty());
  EXPECT_THAT(SplitLines("\n"), ElementsAre(""));
  EXPECT_THAT(SplitLines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(SplitLines("a\nb\n"), ElementsAre("a", "b"));
}

TEST(SplitText, WordsWithoutEmptyParts) {
  EXPECT_THAT(SplitWords("  "), IsEmpty());
  EXPECT_THAT(SplitWords(" a  bc "), ElementsAre("a", "bc"));
  EXPECT_THAT(SplitWords("1, 2,\t3\n", ", \t\n"), ElementsAre("1", "2", "3"));
}

}  // namespace
}  // namespace shardc
