// What a process does that another launcher started as one of several: it meets the others, compares what it was
// started with, and is a rank, or the launcher of the ranks of its host.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/cluster/place.h"
#include "compiler/plan/plan.h"
#include "runtime/launch/launch.h"

namespace shardc {

/// The address by which GLOO_SOCKET_IFNAME has other hosts reach this one; empty if it is not set. It names interfaces,
/// or is an address of this host. Errors: ExitCode::Environment with the variable.
auto OwnAddress(const LaunchPlace& place) -> ErrorOr<std::string>;

/// The part of this process in a launch by another launcher. `plan`: or why it has none. Returns as LaunchLocal does.
auto MeetAndRun(const LaunchPlace& place, ErrorOr<Plan> plan, const LaunchOptions& options) -> ErrorOr<ExitCode>;

/// Of a process whose variables are wrong: it says so here first, and then to the others, which wait for it.
auto RefuseLaunch(const Error& error) -> ErrorOr<ExitCode>;

}  // namespace shardc
