// Did-you-mean: which known word a misspelt one is nearest to. Lists and wording are the caller's.

#include <algorithm>
#include <array>

#include "compiler/diag/diagnostics.h"

namespace shardc {

static auto Lower(char c) -> char { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Optimal string alignment distance; three rows of the table suffice, as a swap looks two rows back.
static auto Distance(std::string_view a, std::string_view b) -> size_t {
  std::array<std::vector<size_t>, 3> rows;
  rows.fill(std::vector<size_t>(b.size() + 1));
  for (size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool is_same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (is_same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1])) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

auto ClosestWord(std::string_view word, const std::vector<std::string_view>& known) -> std::string {
  const size_t limit = std::max<size_t>(2, word.size() / 3);
  std::string_view closest;
  size_t least = limit + 1;
  for (const std::string_view name : known) {
    const size_t longer = std::max(word.size(), name.size());
    if (longer - std::min(word.size(), name.size()) > limit) {
      continue;
    }
    const size_t distance = Distance(word, name);
    if (distance < least && distance < longer) {
      least = distance;
      closest = name;
    }
  }
  return std::string(closest);
}

auto IsSlipOf(std::string_view word, std::string_view known) -> bool {
  constexpr size_t LongWord = 6;
  const size_t longer = std::max(word.size(), known.size());
  const size_t least = std::min(word.size(), known.size());
  return longer - least <= 2 && least > 2 && Distance(word, known) <= (least >= LongWord ? 2 : 1);
}

}  // namespace shardc
