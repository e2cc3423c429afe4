// Before anything else the ranks see that they hold one and the same plan: their collectives would not pair otherwise.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Compares the hashes of all ranks' plans, and their texts only if the hashes differ. Every rank then gets the same
/// error, with the fields in which other plans differ from that of rank 0. Collective over all ranks. Errors:
/// ExitCode::Environment.
auto AgreeOnPlan(RankControl& control, const Plan& plan) -> Status;

/// Returns the fields in which the first lines of two plans' texts differ: "line 12, run: seed=7 on rank 0, seed=8
/// here".
auto DifferencesOf(std::string_view of_rank_zero, std::string_view here) -> std::string;

}  // namespace shardc
