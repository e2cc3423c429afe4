// Which misspelt words get a suggestion.

#include <gtest/gtest.h>

#include "compiler/diag/diagnostics.h"

namespace shardc {
namespace {

struct ClosestCase {
  std::string_view word;
  std::vector<std::string_view> known;
  std::string_view closest;
};

TEST(ClosestWord, Cases) {
  const ClosestCase cases[] = {
      {"hiden", {"heads", "hidden"}, "hidden"},
      {"hiddden", {"heads", "hidden"}, "hidden"},
      {"hidedn", {"heads", "hidden"}, "hidden"},
      {"higgen", {"heads", "hidden"}, "hidden"},
      {"hidden", {"heads", "hidden"}, "hidden"},
      {"HIDDEN", {"heads", "hidden"}, "hidden"},
      {"tq", {"dp", "tp"}, "tp"},
      // Of equals, the first.
      {"xp", {"dp", "tp"}, "dp"},
      // Nothing in common is not near, however short.
      {"x", {"dp", "tp"}, ""},
      {"qq", {"dp", "tp"}, ""},
      {"seed", {"format", "order"}, ""},
      // Longer words may differ in a third of their letters, not in more.
      {"reshard_after_fwd", {"reshard_after_forward"}, "reshard_after_forward"},
      {"weight_dec", {"weight_decay"}, "weight_decay"},
      {"weight", {"weight_decay"}, ""},
      {"abcxyz", {"abcdef"}, ""},
      // A letter of another script that looks alike.
      {"l\xd0\xb0yers", {"layers"}, "layers"},
      {"", {"dp"}, ""},
      {"dp", {}, ""},
      {"dp", {""}, ""},
  };
  for (const ClosestCase& row : cases) {
    EXPECT_EQ(ClosestWord(row.word, row.known), row.closest) << row.word;
  }
}

TEST(ClosestWord, LongWordsAreQuick) { EXPECT_EQ(ClosestWord(std::string(1'000'000, 'x'), {"hidden", "heads"}), ""); }

}  // namespace
}  // namespace shardc
