// One rank of a job, from its device to the report of its error.
#pragma once

#include <sys/types.h>

#include "runtime/launch/job.h"

namespace shardc {

/// Runs one rank in the calling process or thread, and reports how it went. `launcher`: the process that forked the
/// rank; 0 if it was not forked.
auto RunOneRank(const Job& job, int64_t rank, pid_t launcher) -> ExitCode;

}  // namespace shardc
