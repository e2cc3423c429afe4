// Does a plan fit this machine, with all that its ranks need? And if not, what makes the largest part of that smaller?
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/plan/plan.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

/// Returns advice on what to change in the recipe, by the largest part of what all ranks need together.
auto RemedyText(const Plan& plan, const OutsideArenas& outside) -> std::string;

/// Asks the machine and the control groups of this process. `available`: of this process. `num_hosts`: those of the job
/// that take from it.
/// Errors: ExitCode::DoesNotFit with all numbers and the remedy.
auto CheckPlanFits(const Plan& plan, const OutsideArenas& outside, const AvailableMemory& available, int64_t num_hosts)
    -> Status;

}  // namespace shardc
