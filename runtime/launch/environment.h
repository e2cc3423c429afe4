// Is this process one of many that another launcher started? This version starts all ranks of one host itself.
#pragma once

#include <functional>

#include "compiler/base/error_or.h"

namespace shardc {

/// Looks up an environment variable; null where it is not set.
using LookUp = std::function<const char*(const char* name)>;

/// Errors: ExitCode::Environment where torchrun, Slurm or MPI started more than one process; names the variables.
auto RefuseOtherLaunchers(const LookUp& look_up) -> Status;

}  // namespace shardc
