// Numbers of ranks along dp: divisors of the batch in turn, since they are few; beyond them by halves, since more ranks
// take less memory each.

#include <numeric>

#include "compiler/driver/fit_search.h"
#include "compiler/explain/recipe_keys.h"

namespace shardc {

/// Plans a number of ranks along dp.
static auto RowOfRanks(const Plan& plan, int64_t dp, int64_t micro, int64_t accumulate, const TrialOptions& options)
    -> LeastRanks {
  LeastRanks row{.ranks = plan.mesh.num_ranks() / plan.mesh.size(Axis::Dp) * dp,
                 .sequences = plan.mesh.size(Axis::Replicate) * dp * micro * accumulate,
                 .row = {}};
  const auto set = [&](std::string_view key, int64_t value, int64_t now) {
    if (value != now) {
      row.row.knob.sets.push_back(fmt::format("{}={}", key, value));
    }
  };
  set("mesh.dp", dp, plan.mesh.size(Axis::Dp));
  set("batch.micro", micro, plan.run.micro_batch);
  set("batch.accumulate", accumulate, plan.run.accumulate);
  if (!RecipeKeys(plan)["batch.global"].empty()) {
    set("batch.global", row.sequences, SamplesPerStep(plan));
  }
  Trial trial = options.plan(row.row.knob.sets);
  row.row.knob.refused = std::move(trial.refused);
  if (row.row.knob.refused.empty()) {
    row.row.figures = trial.figures;
  }
  return row;
}

auto LeastRanksThatFit(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks> {
  const int64_t dp = plan.mesh.size(Axis::Dp);
  const int64_t micro = plan.run.micro_batch;
  const int64_t accumulate = plan.run.accumulate;
  const int64_t sequences = dp * micro * accumulate;
  const auto fits = [&](const LeastRanks& row) { return row.row.figures && fit.fits(*row.row.figures); };
  for (int64_t ranks = 1; ranks <= sequences; ++ranks) {
    if (sequences % ranks == 0) {
      const int64_t parts = std::gcd(micro, sequences / ranks);
      if (LeastRanks row = RowOfRanks(plan, ranks, parts, sequences / ranks / parts, options); fits(row)) {
        return row;
      }
    }
  }
  // Hosts have the same number of ranks each.
  const int64_t others = plan.mesh.num_ranks() / dp;
  const int64_t step = plan.mesh.hosts / std::gcd(plan.mesh.hosts, others);
  const auto of = [&](int64_t steps) { return RowOfRanks(plan, steps * step, micro, accumulate, options); };
  int64_t too_few = dp / step;
  LeastRanks found = of(too_few * 2);
  while (!fits(found)) {
    too_few *= 2;
    if (too_few * 2 * step * others > MostRanksTried) {
      return std::nullopt;
    }
    found = of(too_few * 2);
  }
  for (int64_t enough = too_few * 2; enough - too_few > 1;) {
    const int64_t middle = too_few + (enough - too_few) / 2;
    if (LeastRanks row = of(middle); fits(row)) {
      found = std::move(row);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

}  // namespace shardc
