// How many files a process may have open: each connection to another process takes one.
#pragma once

#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

/// Raises the limit of this process (`ulimit -n`) as far as it may (`ulimit -Hn`).
auto RaiseOpenFileLimit() -> void;

/// Whether a process can have what a launch of `num_processes`, those of forked ranks included, opens: connections to
/// all others, and what it has for itself. Errors: ExitCode::Environment with the limit.
auto CheckOpenFileLimit(int64_t num_processes) -> Status;

/// Whether a process can open a store, or connect to one.
auto CanOpenStore() -> bool;

}  // namespace shardc
