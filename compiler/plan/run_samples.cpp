#include "compiler/plan/run_samples.h"

#include <cmath>

#include "compiler/plan/sample_quotas.h"

namespace shardc {

constexpr int64_t MostStepsCounted = int64_t{1} << 20;

static auto Estimate(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<RunSamples> {
  ASSIGN_OR_RETURN(auto shares, SampleShares::Create(data, samples_per_step, steps));
  std::vector<int64_t> units;
  std::vector<double> sums(shares.num_sources(), 0);
  const int64_t looked_at = shares.last_change() == 0 ? 1 : MostStepsCounted;
  for (int64_t i = 0; i < looked_at; ++i) {
    RETURN_IF_ERROR(shares.At(Spread(i, looked_at, steps.count - 1), units));
    for (size_t s = 0; s < sums.size(); ++s) {
      sums[s] += static_cast<double>(units[s]);
    }
  }
  RunSamples run{.samples = {}, .is_exact = false};
  for (const double sum : sums) {
    const double a_step = sum / static_cast<double>(looked_at) / static_cast<double>(SampleUnit);
    run.samples.push_back(std::llround(a_step * static_cast<double>(steps.count)));
  }
  return run;
}

auto CountRunSamples(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<RunSamples> {
  if (steps.count > MostStepsCounted) {
    return Estimate(data, samples_per_step, steps);
  }
  ASSIGN_OR_RETURN(auto quotas, SampleQuotas::Create(data, samples_per_step, steps));
  while (quotas.step() < steps.count) {
    RETURN_IF_ERROR(quotas.Next());
  }
  return RunSamples{.samples = quotas.taken(), .is_exact = true};
}

}  // namespace shardc
