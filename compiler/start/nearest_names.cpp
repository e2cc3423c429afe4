// A part of the pattern counts as much as the likest part of the name has letters in common with it; parts of a name
// that the pattern does not mention count a little against it.

#include "compiler/start/nearest_names.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compiler/base/text/split.h"
#include "compiler/recipe/other_tools.h"

namespace shardc {

static auto IsNumber(std::string_view part) -> bool {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns `model.layers.*.mlp.up_proj.weight`.
static auto Folded(std::string_view name) -> std::string {
  std::string folded;
  for (const std::string_view part : SplitAt(name, ".")) {
    folded += folded.empty() ? "" : ".";
    folded += IsNumber(part) ? "*" : part;
  }
  return folded;
}

auto FoldedNames(const std::vector<std::string_view>& names) -> std::vector<std::string> {
  std::vector<std::string> folded;
  for (const std::string_view name : names) {
    std::string of_all_blocks = Folded(name);
    if (std::ranges::find(folded, of_all_blocks) == folded.end()) {
      folded.push_back(std::move(of_all_blocks));
    }
  }
  return folded;
}

static auto CommonSubsequence(std::string_view a, std::string_view b) -> size_t {
  std::vector<size_t> row(b.size() + 1);
  for (const char c : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = c == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// Returns 1 for equal parts, 0 for parts without a common letter.
static auto Likeness(std::string_view a, std::string_view b) -> double {
  return 2.0 * static_cast<double>(CommonSubsequence(a, b)) /
         static_cast<double>(std::max<size_t>(1, a.size() + b.size()));
}

static auto OurPart(std::string_view part) -> std::string_view {
  const auto rows = NamesElsewhere();
  const auto row = std::ranges::find(rows, part, &Hint::word);
  return row == rows.end() ? part : row->answer;
}

static auto Score(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& name) -> double {
  constexpr double Unmentioned = 0.05;
  double score = 0;
  for (const std::string_view part : pattern) {
    double best = 0;
    for (const std::string_view other : name) {
      best = std::max(best, Likeness(part, other));
    }
    // What is half alike is not alike.
    score += std::max(0.0, 2 * best - 1);
  }
  return score - Unmentioned * static_cast<double>(name.size());
}

auto NearestNames(std::string_view pattern, const std::vector<std::string_view>& names, size_t most)
    -> std::vector<std::string> {
  std::vector<std::string> bare;
  for (const std::string_view part : SplitAt(pattern, ".")) {
    std::string letters(part);
    std::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
    // Words that all names have say nothing.
    if (!letters.empty() && !IsNumber(letters) && letters != "weight" && letters != "model") {
      bare.emplace_back(OurPart(letters));
    }
  }
  const std::vector<std::string_view> parts(bare.begin(), bare.end());
  std::vector<std::pair<double, std::string>> scored;
  for (std::string& folded : FoldedNames(names)) {
    const double score = Score(parts, SplitAt(folded, "."));
    scored.emplace_back(score, std::move(folded));
  }
  std::ranges::stable_sort(scored, std::greater<>(), [](const auto& row) { return row.first; });
  std::vector<std::string> nearest;
  for (const auto& [score, name] : scored) {
    // Beside the likeliest, those that are nearly as alike.
    if (nearest.size() < most && score > 0 && score > scored.front().first - 0.5) {
      nearest.push_back(name);
    }
  }
  return nearest;
}

}  // namespace shardc
