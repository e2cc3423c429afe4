// How fast collectives are among ranks that are processes with GPUs.
#pragma once

#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

/// Prints a line of JSON for each kind of collective and size: bytes of the full vector, and how long rank 0 takes. The
/// ranks share GPUs if they may. Requires: this process has not called CUDA.
auto MeasureRates(int64_t num_ranks, bool shares_gpus) -> ErrorOr<ExitCode>;

}  // namespace shardc
