// Whether the hosts of a launch have a core for each of their ranks.
#pragma once

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "runtime/launch/meeting.h"

namespace shardc {

/// Of a launch over several hosts, all processes of which call it, in a constant number of calls to the store for each.
/// A host has the cores that one of its processes may run on, by its mask of cores (`taskset`, cpusets). A quota of
/// processor time is not looked at. On one host ranks may share cores. Errors, the same in all processes:
/// ExitCode::Environment with the hosts that have fewer cores than ranks.
auto CheckHostCores(const Mesh& mesh, Meeting& meeting) -> Status;

}  // namespace shardc
