// A launcher that is killed (SIGKILL to torchrun's agent, to Hydra's proxy) sends its processes no signal: they would
// go on in a job that is over for those who asked for it.
#pragma once

#include "compiler/cluster/place.h"

namespace shardc {

/// Asks the kernel to send SIGTERM to this process when its parent ends, if that is a launcher that started it as one
/// of several (LaunchPlace::launcher_is_parent): the run is saved and ends. Holds also if this process becomes another
/// program (exec). The kernel takes the end of the parent's thread that forked this process for the end of the parent.
auto EndWithLauncher(const LookUp& look_up) -> void;

}  // namespace shardc
