#include "compiler/cost/source_shares.h"

#include <algorithm>

#include "compiler/plan/run_samples.h"

namespace shardc {

/// Returns the share of a single stream, which takes all samples.
static auto ShareOfStream(const Plan& plan) -> MixtureUse {
  return {.sources = {{.name = "", .weight = "", .samples = SamplesPerStep(plan) * plan.run.steps, .fraction = 1}},
          .fault = {}};
}

static auto SharesOfMixture(const Plan& plan) -> MixtureUse {
  MixtureUse use;
  for (const TokenSource& source : plan.data.sources) {
    use.sources.push_back({.name = source.name, .weight = source.weight});
  }
  const auto run = CountRunSamples(plan.data, SamplesPerStep(plan), plan.run.schedule_steps());
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

auto MixtureOf(const Plan& plan, const std::vector<SourceFacts>& facts) -> MixtureUse {
  const bool any_known =
      std::any_of(facts.begin(), facts.end(), [](const SourceFacts& source) { return source.is_known; });
  MixtureUse use;
  if (plan.data.is_mixture()) {
    use = SharesOfMixture(plan);
  } else if (any_known) {
    use = ShareOfStream(plan);
  }
  for (size_t s = 0; s < std::min(use.sources.size(), facts.size()); ++s) {
    use.sources[s].is_known = facts[s].is_known;
    use.sources[s].tokens = facts[s].tokens;
    use.sources[s].epoch_samples = facts[s].splits.train_samples;
    use.sources[s].eval_samples = facts[s].splits.eval_samples;
  }
  return use;
}

}  // namespace shardc
