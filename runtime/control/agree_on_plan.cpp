#include "runtime/control/agree_on_plan.h"

#include <algorithm>
#include <vector>

#include "compiler/base/text/split.h"
#include "compiler/plan/text.h"
#include "runtime/control/agree.h"

namespace shardc {

/// Returns the words of a line that the other line does not have.
static auto WordsMissingIn(std::string_view other, std::string_view line) -> std::string {
  const std::vector<std::string_view> others = SplitWords(other);
  std::vector<std::string_view> words = SplitWords(line);
  std::erase_if(words,
                [&](std::string_view word) { return std::find(others.begin(), others.end(), word) != others.end(); });
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, " "));
}

/// Returns the subject of a line: "run", "parameter p7".
static auto HeadOf(std::string_view line) -> std::string {
  const std::vector<std::string_view> words = SplitWords(line);
  const bool has_id = words.size() > 1 && words[1].find('=') == std::string_view::npos;
  return fmt::format(
      "{}",
      fmt::join(words.begin(), words.begin() + (has_id ? 2 : std::min<std::ptrdiff_t>(1, std::ssize(words))), " "));
}

auto DifferencesOf(std::string_view of_rank_zero, std::string_view here) -> std::string {
  constexpr size_t MostLines = 3;
  const std::vector<std::string_view> expected = SplitWords(of_rank_zero, "\n");
  const std::vector<std::string_view> lines = SplitWords(here, "\n");
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < std::max(expected.size(), lines.size()) && shown < MostLines; ++i) {
    const std::string_view a = i < expected.size() ? expected[i] : "";
    const std::string_view b = i < lines.size() ? lines[i] : "";
    if (a != b) {
      ++shown;
      text += fmt::format("{}line {}, {}: {} on rank 0, {} here", shown > 1 ? "; " : "", i + 1,
                          HeadOf(a.empty() ? b : a), WordsMissingIn(b, a), WordsMissingIn(a, b));
    }
  }
  return text;
}

auto AgreeOnPlan(RankControl& control, const Plan& plan) -> Status {
  const std::string hash = PlanHash(plan);
  std::string hashes(hash.size() * static_cast<size_t>(control.mesh().num_ranks()), '\0');
  RETURN_IF_ERROR(control.Gather(AxisSet::All(), reinterpret_cast<const std::byte*>(hash.data()),
                                 static_cast<int64_t>(hash.size()), reinterpret_cast<std::byte*>(hashes.data())));
  bool all_same = true;
  for (size_t begin = 0; begin < hashes.size(); begin += hash.size()) {
    all_same = all_same && hashes.compare(begin, hash.size(), hashes, 0, hash.size()) == 0;
  }
  if (all_same) {
    return Success{};
  }
  const std::string text = PrintPlan(plan, {.origins = false, .paths = false});
  ASSIGN_OR_RETURN(const auto expected, TextOfRankZero(control, text));
  const bool differs = hashes.compare(0, hash.size(), hash) != 0;
  const Status mine =
      differs ? Status(Fail(ExitCode::Environment, "has another plan than rank 0: {}", DifferencesOf(expected, text)))
              : Status(Success{});
  return AgreeOnStatus(control, mine);
}

}  // namespace shardc
