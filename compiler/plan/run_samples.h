// How many samples a run takes from each source of a mixture.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct RunSamples {
  /// Samples of each source.
  std::vector<int64_t> samples;
  /// Were all steps counted? Runs of more than 2^20 are estimated, from the shares of so many, evenly spread.
  bool is_exact = true;
};

/// Requires and errors: as SampleQuotas. Cost: of the weights, for 2^20 steps at most.
auto CountRunSamples(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<RunSamples>;

}  // namespace shardc
