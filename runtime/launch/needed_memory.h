// Does a plan fit this machine, with all that its ranks need? And if not, what makes the largest part of that smaller?
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns advice on what to change in the recipe, by the largest part of what all ranks need together.
auto RemedyText(const Plan& plan, const OutsideArenas& outside) -> std::string;

/// Asks the machine and the control groups of this process.
/// Errors: ExitCode::DoesNotFit with all numbers and the remedy.
auto CheckPlanFits(const Plan& plan, const OutsideArenas& outside) -> Status;

}  // namespace shardc
