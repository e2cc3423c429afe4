// How many threads a rank may compute with; it starts those of them that its plan has work for
// (compiler/ops/cpu/usable_threads.h).
#pragma once

#include <algorithm>

#include "compiler/base/processor.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the number of threads that the plan sets. If it leaves the number open, each rank of a host gets an equal
/// part of the cores that the job may run on there.
inline auto NumComputeThreads(const Plan& plan) -> int64_t {
  return plan.run.threads > 0 ? plan.run.threads : std::max<int64_t>(1, NumCores() / plan.mesh.ranks_per_host());
}

}  // namespace shardc
