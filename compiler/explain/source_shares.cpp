#include "compiler/explain/source_shares.h"

#include <algorithm>

#include "compiler/plan/run_samples.h"

namespace shardc {

auto MixtureOf(const Plan& plan) -> MixtureUse {
  MixtureUse use;
  if (!plan.data.is_mixture()) {
    return use;
  }
  for (const TokenSource& source : plan.data.sources) {
    use.sources.push_back({.name = source.name, .weight = source.weight});
  }
  const auto run = CountRunSamples(plan.data, SamplesPerStep(plan), plan.run.steps);
  if (!run) {
    use.fault = run.error().message;
    return use;
  }
  use.is_exact = run->is_exact;
  const double all =
      static_cast<double>(SamplesPerStep(plan)) * static_cast<double>(std::max<int64_t>(plan.run.steps, 1));
  for (size_t s = 0; s < use.sources.size(); ++s) {
    use.sources[s].samples = run->samples[s];
    use.sources[s].fraction = static_cast<double>(run->samples[s]) / all;
  }
  return use;
}

}  // namespace shardc
