// The guard of a process that a launcher started: a process of its own, which looks at that process and does nothing
// else. It ends what nobody else would end:
//
// 1. A process that is stopped (SIGSTOP) and does not go on never learns that the others have given it up. If it is
//    alone on its host, no process of the launch is there to end it.
// 2. A process whose launcher was killed (SIGKILL to torchrun's agent, say) gets no more signals from it, and would go
//    on in a job that is over for those who asked for it.
#pragma once

#include "compiler/base/units.h"
#include "compiler/cluster/place.h"

namespace shardc {

/// Starts the guard of this process, if a launcher started it as one of several, and it has none yet. The guard ends
/// together with this process, also if this process becomes another program (exec). It does two things, and writes a
/// warning to stderr each time:
///
/// - It kills this process when this process has been stopped for 4 s more than `timeout`. By then the others, who wait
///   for this process as long as `timeout` says, have given it up. It does not kill a launcher whose ranks go on. It
///   cannot kill process 1 of a pid namespace. A stop of the guard itself does not count: a whole process group that is
///   suspended (Ctrl-Z, a scheduler) may go on later.
/// - It sends SIGTERM to this process when the parent of this process is gone, if that was the launcher
///   (LaunchPlace::launcher_is_parent) and was still there when the guard began: the run is saved and ends.
///
/// Returns whether this process has a guard. It has none if the system has no process to spare, or if /proc does not
/// show this process. Requires: this process has one thread.
auto StartGuard(const LookUp& look_up, Seconds timeout) -> bool;

}  // namespace shardc
