// Whether a run sent what its plan says: what the communicator counted beside what the sections that ran have by
// explain's sums. A difference is a fault of shardc, in the plan's costs or in the communicator.
#pragma once

#include <array>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// How often each section ran.
using SectionRuns = std::array<int64_t, NumSections>;

/// Returns the traffic that one rank should have sent. `wire` is the sum over all ranks, because slices need not be
/// equal.
auto PlannedTraffic(const Plan& plan, const SectionRuns& runs) -> TrafficTable;

/// Compares the traffic that was sent with the plan's. Returns a line about it, on all ranks. Collective.
/// Errors: InternalFault with the op and axes of the first difference, and both figures.
auto CompareTraffic(const Communicator& comm, RankControl& control, const TrafficTable& planned)
    -> ErrorOr<std::string>;

}  // namespace shardc
