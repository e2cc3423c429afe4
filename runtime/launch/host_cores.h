// Whether the hosts of a launch have a core for each of their ranks.
#pragma once

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "runtime/meet/meeting.h"

namespace shardc {

/// Checks that each host has a core for each of its ranks. Called by all processes of a launch over several hosts, in a
/// constant number of calls to the store for each. A host has the cores that one of its processes may run on, by its
/// mask of cores (`taskset`, cpusets); a quota of processor time does not count. On one host ranks may share cores.
/// Errors, the same in all processes: ExitCode::Environment with the hosts that have fewer cores than ranks.
auto CheckHostCores(const Mesh& mesh, Meeting& meeting) -> Status;

}  // namespace shardc
