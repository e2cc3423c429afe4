// Plans of a recipe with keys changed, for their figures alone. Where there are many blocks, plans of few of them tell
// in a fraction of the time what a whole plan will say.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/driver/recipe_source.h"
#include "compiler/fit/trials.h"

namespace shardc {

/// Plans without the verifier, which takes most of the time of a plan. Several threads may call it at once.
class TrialPlanner {
 public:
  using Sets = std::vector<std::string>;

  /// Takes the plan of the recipe as it is, whose text is `text` and whose files were accepted, and `fit` with its
  /// figures. Requires: all outlive this.
  TrialPlanner(const RecipeOptions& recipe, const std::string& text, const Plan& plan, const FitUse& fit);

  /// Errors: why it is refused, on one line.
  auto PlanWith(const Sets& sets, std::optional<PassKind> stop_after = {}) const -> ErrorOr<Plan>;
  /// Takes what PlanWith returned.
  auto Remember(const Sets& sets, const ErrorOr<Plan>& plan) -> Trial;
  /// Returns what the whole plan says.
  auto Whole(const Sets& sets) -> Trial;
  /// Returns the same, or figures that two plans of few blocks give by a line through them: where the line gives those
  /// of the recipe as it is, and leaves no doubt about what fits.
  auto Estimate(const Sets& sets) -> Trial;

  /// Returns how many combinations were planned.
  auto num_planned() -> size_t {
    const std::lock_guard lock(mutex_);
    return known_.size();
  }
  /// Returns how many combinations were planned whole.
  auto num_whole() const -> size_t {
    return static_cast<size_t>(std::ranges::count_if(known_, [](const auto& one) { return one.second.is_whole; }));
  }

  /// Returns what a search finds that asks for estimates, after it was planned whole: what does not stand is known by
  /// then, and the search is asked again.
  template <class Search>
  auto Answer(const Search& search) -> decltype(search()) {
    while (true) {
      auto found = search();
      if (!found || IsWhole(found->row.knob.sets)) {
        return found;
      }
      Whole(found->row.knob.sets);
    }
  }

 private:
  struct Known {
    Trial trial;
    bool is_whole = false;
  };

  auto IsWhole(const Sets& sets) -> bool;
  auto FindKnown(const Sets& sets, bool is_whole) -> std::optional<Trial>;
  auto Keep(const Sets& sets, Trial trial, bool is_whole) -> Trial;
  auto TrialOf(const ErrorOr<Plan>& plan) const -> Trial;
  auto FromFewBlocks(const Sets& sets) const -> std::optional<Trial>;
  auto IsLineRight() const -> bool;
  auto IsInDoubt(const Trial& trial) const -> bool;

  const RecipeOptions& recipe_;
  const std::string& text_;
  const FitUse& fit_;
  int64_t num_blocks_ = 0;
  /// Plans of few blocks give the figures of the recipe as it is. Asked for when the first estimate is.
  bool is_line_right_ = false;
  std::once_flag line_is_judged_;
  /// Later passes change no figure.
  std::optional<PassKind> last_;
  std::mutex mutex_;
  std::map<Sets, Known> known_;
};

}  // namespace shardc
