// The combinations of keys that a search has planned, each once.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fit/fit.h"
#include "compiler/fit/in_parallel.h"
#include "compiler/fit/offers.h"

namespace shardc {

/// A recipe that was planned with some keys changed.
struct Trial {
  PlanFigures figures;
  /// LeastFiguresOf.
  PlanFigures least;
  /// Why there is no such plan, on one line; else empty.
  std::string refused;
};

struct TrialOptions {
  /// Plans the recipe with these keys changed. Several threads call it at once.
  std::function<Trial(const std::vector<std::string>& sets)> plan;
  /// Called with the number of plans so far.
  std::function<void(size_t planned)> tell;
};

using Combinations = std::vector<Combination>;

/// Plans each combination once.
class Trials {
 public:
  Trials(const FitUse& fit, const AllOffers& offers, const TrialOptions& options)
      : fit_(fit), offers_(offers), options_(options) {}

  /// Plans those that were not.
  auto Plan(const Combinations& combinations) -> void {
    std::set<Combination> all(combinations.begin(), combinations.end());
    std::erase_if(all, [&](const Combination& one) { return planned_.contains(one); });
    const Combinations fresh(all.begin(), all.end());
    std::vector<Trial> trials(fresh.size());
    InParallel(fresh.size(), [&](size_t i) { trials[i] = options_.plan(KnobOf(offers_, fresh[i]).sets); });
    for (size_t i = 0; i < fresh.size(); ++i) {
      planned_[fresh[i]] = std::move(trials[i]);
    }
    options_.tell(planned_.size());
  }
  auto has(const Combination& combination) const -> bool { return planned_.contains(combination); }
  /// Requires: it was planned.
  auto of(const Combination& combination) const -> const Trial& { return planned_.at(combination); }
  auto Fits(const Combination& combination) const -> bool {
    return of(combination).refused.empty() && fit_.fits(of(combination).figures);
  }
  auto RowOf(const Combination& combination) const -> KnobRow {
    return {.knob = KnobOf(offers_, combination), .figures = of(combination).figures};
  }

 private:
  const FitUse& fit_;
  const AllOffers& offers_;
  const TrialOptions& options_;
  std::map<Combination, Trial> planned_;
};

}  // namespace shardc
