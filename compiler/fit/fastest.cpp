// From each combination where the search begins, one subject after another takes its fastest offer, until none is
// faster: times of steps follow no rule by which combinations could be ruled out unplanned.

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/fit/fit_search.h"
#include "compiler/fit/trials.h"

namespace shardc {

/// Returns the combinations with each offer of a subject, or with those that are tried last too. Subjects that a layout
/// does not have are left as they are.
static auto WithEach(const Combinations& combinations, const AllOffers& offers, Subject subject, bool and_last = false)
    -> Combinations {
  Combinations each;
  const std::vector<Offer>& of_subject = offers[static_cast<size_t>(subject)].offers;
  for (Combination one : combinations) {
    for (size_t offer = 0; offer < of_subject.size(); ++offer) {
      if (of_subject[offer].is_last && !and_last) {
        continue;
      }
      one[static_cast<size_t>(subject)] = offer;
      Combination& next = each.emplace_back(one);
      const Offer& layout = LayoutOf(offers, next);
      for (size_t i = 0; i < NumSubjects; ++i) {
        next[i] = Applies(static_cast<Subject>(i), layout) ? next[i] : offers[i].as_is;
      }
    }
  }
  return each;
}

auto FastestThatFits(const std::optional<Combination>& cheapest, const FitUse& fit, const AllOffers& offers,
                     const TrialOptions& options) -> std::optional<Found> {
  Trials trials(fit, offers, options);
  // Infinity where a combination is refused, does not fit or has no time.
  const auto time_of = [&](const Combination& one) {
    const auto& time = trials.of(one).figures.time;
    return time && trials.Fits(one) ? time->step().value : std::numeric_limits<double>::infinity();
  };
  const auto fastest_of = [&](const Combinations& all) {
    trials.Plan(all);
    return *std::ranges::min_element(all, {}, time_of);
  };
  const auto is_faster = [&](const Combination& one, const Combination& other) {
    return time_of(one) < time_of(other) * (1 - LeastGain);
  };
  Combinations begins{AsItIs(offers)};
  if (cheapest) {
    begins.push_back(*cheapest);
  } else {
    for (const Combination& one : WithEach({begins.front()}, offers, Subject::Policy)) {
      begins.push_back(fastest_of(WithEach({one}, offers, Subject::Layout)));
    }
  }
  trials.Plan(begins);
  std::optional<Combination> fastest;
  for (Combination& at : begins) {
    if (std::isinf(time_of(at))) {
      continue;
    }
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (size_t subject = 0; subject < NumSubjects; ++subject) {
        const Combination next = fastest_of(WithEach({at}, offers, static_cast<Subject>(subject)));
        is_changed |= is_faster(next, at);
        at = is_faster(next, at) ? next : at;
      }
    }
    fastest = !fastest || is_faster(at, *fastest) ? at : *fastest;
  }
  for (size_t subject = 0; fastest && subject < NumSubjects; ++subject) {
    if (std::ranges::any_of(offers[subject].offers, &Offer::is_last)) {
      const Combination next = fastest_of(WithEach({*fastest}, offers, static_cast<Subject>(subject), true));
      fastest = is_faster(next, *fastest) ? next : *fastest;
    }
  }
  return fastest ? std::optional(Found{.combination = *fastest, .row = trials.RowOf(*fastest)}) : std::nullopt;
}

}  // namespace shardc
