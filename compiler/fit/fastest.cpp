// From each combination where the search begins, one subject after another takes its fastest offer, until none is
// faster: times of steps follow no rule by which combinations could be ruled out unplanned.

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/fit/fit_search.h"
#include "compiler/fit/trials.h"

namespace shardc {

namespace {

/// The search of FastestThatFits.
class Descent {
 public:
  Descent(const FitUse& fit, const AllOffers& offers, const TrialOptions& options)
      : fit_(fit), offers_(offers), trials_(offers, options) {}

  /// Returns where the search ends that begins there.
  auto From(Combination combination) -> Combination;
  /// Returns the fastest of the layouts with each policy, all else as it is.
  auto FastestPair() -> Combination;
  auto trials() -> Trials& { return trials_; }
  /// Returns the time of a step; infinity where the combination is refused or does not fit. Requires: it was planned.
  auto TimeOf(const Combination& combination) const -> double;

 private:
  /// Returns the combination with each offer of a subject. Subjects that a layout does not have are left as they are.
  auto WithEach(const Combination& combination, size_t subject) const -> Combinations;

  const FitUse& fit_;
  const AllOffers& offers_;
  Trials trials_;
};

auto Descent::TimeOf(const Combination& combination) const -> double {
  const Trial& trial = trials_.of(combination);
  return trial.refused.empty() && trial.figures.time && fit_.fits(trial.figures)
             ? trial.figures.time->step().value
             : std::numeric_limits<double>::infinity();
}

auto Descent::WithEach(const Combination& combination, size_t subject) const -> Combinations {
  constexpr auto LayoutIndex = static_cast<size_t>(Subject::Layout);
  Combinations each;
  for (size_t offer = 0; offer < offers_[subject].offers.size(); ++offer) {
    Combination one = combination;
    one[subject] = offer;
    const Offer& layout = offers_[LayoutIndex].offers[one[LayoutIndex]];
    for (size_t i = 0; i < NumSubjects; ++i) {
      one[i] = Applies(static_cast<Subject>(i), layout) ? one[i] : offers_[i].as_is;
    }
    each.push_back(one);
  }
  return each;
}

auto Descent::FastestPair() -> Combination {
  Combinations pairs;
  for (const Combination& with_policy : WithEach(AsItIs(offers_), static_cast<size_t>(Subject::Policy))) {
    const Combinations with_layout = WithEach(with_policy, static_cast<size_t>(Subject::Layout));
    pairs.insert(pairs.end(), with_layout.begin(), with_layout.end());
  }
  trials_.Plan(pairs);
  return *std::ranges::min_element(pairs, {}, [&](const Combination& one) { return TimeOf(one); });
}

auto Descent::From(Combination combination) -> Combination {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (size_t subject = 0; subject < NumSubjects; ++subject) {
      const Combinations each = WithEach(combination, subject);
      trials_.Plan(each);
      const auto fastest = std::ranges::min_element(each, {}, [&](const Combination& one) { return TimeOf(one); });
      if (TimeOf(*fastest) < TimeOf(combination) * (1 - LeastGain)) {
        combination = *fastest;
        is_changed = true;
      }
    }
  }
  return combination;
}

}  // namespace

auto FastestThatFits(const Combination& cheapest, const FitUse& fit, const AllOffers& offers,
                     const TrialOptions& options) -> std::optional<KnobRow> {
  Descent descent(fit, offers, options);
  Combinations begins{AsItIs(offers), cheapest};
  descent.trials().Plan(begins);
  if (std::isinf(descent.TimeOf(begins.front()))) {
    begins.push_back(descent.FastestPair());
  }
  std::optional<Combination> fastest;
  for (const Combination& begin : begins) {
    if (std::isinf(descent.TimeOf(begin))) {
      continue;
    }
    const Combination end = descent.From(begin);
    const bool is_faster = !fastest || descent.TimeOf(end) < descent.TimeOf(*fastest) * (1 - LeastGain);
    fastest = is_faster ? end : *fastest;
  }
  return fastest ? std::optional(descent.trials().RowOf(*fastest)) : std::nullopt;
}

}  // namespace shardc
