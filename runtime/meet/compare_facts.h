// Compares what the processes of a launch were started with: recipe, options, versions, token files.
#pragma once

#include <vector>

#include "compiler/base/error_or.h"
#include "runtime/meet/meeting_texts.h"

namespace shardc {

/// Compares the facts of all processes. `all`: in the order of the processes. Errors: ExitCode::Environment with up to
/// three facts that differ, each with the processes that have another value than process 0.
auto CheckFactsAreEqual(const std::vector<Introduction>& all) -> Status;

}  // namespace shardc
