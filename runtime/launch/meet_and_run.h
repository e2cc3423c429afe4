// What a process does that another launcher started as one of several: it meets the others, compares what it was
// started with, and is a rank, or the launcher of the ranks of its host.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/cluster/place.h"
#include "compiler/plan/plan.h"
#include "runtime/launch/launch.h"

namespace shardc {

/// Returns the address by which GLOO_SOCKET_IFNAME lets other hosts reach this one; empty if it is not set. The
/// variable names interfaces, or is an address of this host. Errors: ExitCode::Environment with the variable.
auto OwnAddress(const LaunchPlace& place) -> ErrorOr<std::string>;

/// Runs the part of this process in a launch by another launcher. `plan`: the plan, or the error that keeps this
/// process from having one. Returns as LaunchLocal does.
auto MeetAndRun(const LaunchPlace& place, ErrorOr<Plan> plan, const LaunchOptions& options) -> ErrorOr<ExitCode>;

/// Refuses the launch in a process whose variables are wrong: reports the error here first, and then to the other
/// processes, which wait for this one.
auto RefuseLaunch(const Error& error) -> ErrorOr<ExitCode>;

}  // namespace shardc
