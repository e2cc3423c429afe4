// Numbers of ranks along dp: divisors of the batch in turn, since they are few; beyond them by halves, since more ranks
// take less memory each.

#include <numeric>

#include "compiler/fit/fit_search.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Returns the first cut that fits of the sequences of each of these ranks along dp into microbatches. Those of the
/// recipe's size come first, then smaller ones, then larger ones.
static auto CutThatFits(const FitUse& fit, const Plan& plan, int64_t dp, int64_t sequences, const TrialOptions& options)
    -> std::optional<LeastRanks> {
  const int64_t of_step = plan.mesh.size(Axis::Replicate) * dp * sequences;
  const bool has_global = KeysOf(plan).batch.global.has_value();
  const auto sets_of = [&](int64_t micro) {
    std::vector<std::string> sets;
    const auto set = [&](std::string_view key, int64_t value, int64_t now) {
      if (value != now) {
        sets.push_back(fmt::format("{}={}", key, value));
      }
    };
    set("mesh.dp", dp, plan.mesh.size(Axis::Dp));
    set("batch.micro", micro, plan.run.micro_batch);
    set("batch.accumulate", sequences / micro, plan.run.accumulate);
    if (has_global) {
      set("batch.global", of_step, SamplesPerStep(plan));
    }
    return sets;
  };
  const auto may_fit = [&](int64_t micro) {
    const Trial trial = options.plan(sets_of(micro));
    return !trial.refused.empty() || fit.fits(trial.least);
  };
  // Smaller microbatches take less, except that a single one needs no sums over microbatches.
  if (!may_fit(1) && !may_fit(sequences)) {
    return std::nullopt;
  }
  std::vector<int64_t> cuts;
  for (int64_t micro = 1; micro <= sequences; ++micro) {
    if (sequences % micro == 0) {
      cuts.insert(micro <= plan.run.micro_batch ? cuts.begin() : cuts.end(), micro);
    }
  }
  for (const int64_t micro : cuts) {
    const Trial trial = options.plan(sets_of(micro));
    if (trial.refused.empty() && fit.fits(trial.figures)) {
      return LeastRanks{.ranks = plan.mesh.num_ranks() / plan.mesh.size(Axis::Dp) * dp,
                        .sequences = of_step,
                        .row = {.knob = {.sets = sets_of(micro)}, .figures = trial.figures}};
    }
  }
  return std::nullopt;
}

auto LeastRanksThatFit(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks> {
  const int64_t dp = plan.mesh.size(Axis::Dp);
  const int64_t of_rank = plan.run.micro_batch * plan.run.accumulate;
  const int64_t sequences = dp * of_rank;
  for (int64_t ranks = 1; ranks <= sequences; ++ranks) {
    if (sequences % ranks == 0) {
      if (auto row = CutThatFits(fit, plan, ranks, sequences / ranks, options)) {
        return row;
      }
    }
  }
  // Hosts have the same number of ranks each.
  const int64_t others = plan.mesh.num_ranks() / dp;
  const int64_t step = plan.mesh.hosts / std::gcd(plan.mesh.hosts, others);
  const auto of = [&](int64_t steps) { return CutThatFits(fit, plan, steps * step, of_rank, options); };
  int64_t too_few = dp / step;
  auto found = of(too_few * 2);
  while (!found) {
    too_few *= 2;
    if (too_few * 2 * step * others > MostRanksTried) {
      return std::nullopt;
    }
    found = of(too_few * 2);
  }
  for (int64_t enough = too_few * 2; enough - too_few > 1;) {
    const int64_t middle = too_few + (enough - too_few) / 2;
    if (auto row = of(middle)) {
      found = std::move(row);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

}  // namespace shardc
