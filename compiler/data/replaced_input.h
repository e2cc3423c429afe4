// Outputs that are named as an input is: writing them would destroy what is read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Errors: ExitCode::Usage, if `output` exists and is one of these files, by whatever name. `option`: "-o".
auto CheckReplacesNone(const std::string& option, const std::string& output, std::span<const std::string> inputs)
    -> Status;

/// The token files of a plan.
auto TokenFilesOf(const Plan& plan) -> std::vector<std::string>;

}  // namespace shardc
