#include "compiler/cluster/launcher_end.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace shardc {

auto EndWithLauncher(const LookUp& look_up) -> void {
  const pid_t launcher = getppid();
  const auto place = FindPlace(look_up);
  if (!place || !*place || !(*place)->launcher_is_parent) {
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have ended before the kernel was asked.
  if (getppid() != launcher) {
    std::raise(SIGTERM);
  }
}

}  // namespace shardc
