// Before anything else the ranks see that they hold one and the same plan: their collectives would not pair otherwise.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Collective over all ranks. Compares hashes first; only where they differ the texts, and then every rank gets the
/// same error, with the fields in which other ranks' plans differ from rank 0's. Errors: ExitCode::Environment.
auto AgreeOnPlan(RankControl& control, const Plan& plan) -> Status;

/// The fields of the first lines of two plans' texts that differ: "line 12, run: seed=7 on rank 0, seed=8 here".
auto DifferencesOf(std::string_view of_rank_zero, std::string_view here) -> std::string;

}  // namespace shardc
