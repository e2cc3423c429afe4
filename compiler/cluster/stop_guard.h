// A process of a launch that is stopped (SIGSTOP) and does not go on never learns that the others have given it up. If
// it is alone on its host, no process of the launch is there to end it. So each process that another launcher started
// has a guard: a process of its own, which looks at it and does nothing else.
#pragma once

#include "compiler/base/units.h"
#include "compiler/cluster/place.h"

namespace shardc {

/// Starts the guard of this process, if a launcher started it as one of several. The guard kills this process when it has
/// been stopped for 4 s more than `timeout`, and says so. By then the others, who wait for this process as long as
/// `timeout` says, have given it up. The guard ends together with this process, also if this process becomes another
/// program (exec).
///
/// A launcher of ranks stays stopped for as long as its ranks go on. A stop of the guard itself does not count: a whole
/// process group that is suspended (Ctrl-Z, a scheduler) may go on later. If the system has no process to spare, there
/// is no guard.
auto GuardAgainstStops(const LookUp& look_up, Seconds timeout) -> void;

}  // namespace shardc
