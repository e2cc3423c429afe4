// The differences that goldens show and hold, against what `diff -u` prints.

#include "tests/support/unified_diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shardc {
namespace {

struct DiffCase {
  std::string_view before;
  std::string_view after;
  std::string_view hunks;
};

constexpr DiffCase Cases[] = {
    {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
    {"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
    {"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
    {"1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n5\n6\n", "@@ -2,5 +2,6 @@\n 2\n 3\n 4\n+x\n 5\n 6\n"},
    // Six unchanged lines between two changes make one hunk, seven make two.
    {"a\n1\n2\n3\n4\n5\n6\nb\n", "x\n1\n2\n3\n4\n5\n6\ny\n",
     "@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n"},
    {"a\n1\n2\n3\n4\n5\n6\n7\nb\n", "x\n1\n2\n3\n4\n5\n6\n7\ny\n",
     "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n"},
    {"a\nb\nc\nd\n", "b\nd\ne\n", "@@ -1,4 +1,3 @@\n-a\n b\n-c\n d\n+e\n"},
    {"a", "a\n", "(only the line end of the last line differs)\n"},
};

TEST(UnifiedDiff, IsWhatDiffPrints) {
  for (const DiffCase& c : Cases) {
    EXPECT_EQ(UnifiedDiff(c.before, c.after, "old", "new"), fmt::format("--- old\n+++ new\n{}", c.hunks));
  }
  EXPECT_EQ(UnifiedDiff("a\n", "a\n", "old", "new"), "");
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n7\n", "1\n2\nx\n4\n5\n6\ny\n", "old", "new", 1),
            "--- old\n+++ new\n@@ -2,3 +2,3 @@\n 2\n-3\n+x\n 4\n@@ -6,2 +6,2 @@\n 6\n-7\n+y\n");
}

TEST(UnifiedDiff, PatchGivesSecondText) {
  for (const DiffCase& c : Cases) {
    if (c.before.empty() || c.before.ends_with('\n')) {
      for (const size_t context : {size_t{0}, size_t{1}, size_t{3}}) {
        const std::string diff = UnifiedDiff(c.before, c.after, "old", "new", context);
        EXPECT_EQ(Patched(c.before, diff).value_or("does not fit"), c.after) << diff;
      }
    }
  }
  EXPECT_EQ(Patched("a\n", ""), "a\n");
  const std::string diff = UnifiedDiff("a\nb\nc\n", "a\nx\nc\n", "old", "new", 1);
  EXPECT_EQ(Patched("a\ny\nc\n", diff), std::nullopt);
  EXPECT_EQ(Patched("a\nb\n", diff), std::nullopt);
  EXPECT_EQ(Patched("", diff), std::nullopt);
}

}  // namespace
}  // namespace shardc
