// A process that may have been stopped by a signal (SIGSTOP), and is killed then, because it would learn of nothing.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <utility>

#include "compiler/base/process_stat.h"

namespace shardc {

class StoppedProcess {
 public:
  explicit StoppedProcess(pid_t pid) : pid_(pid) {}

  /// It has been stopped for two looks: a group of processes that continues does so one after another.
  auto IsStopped() -> bool {
    const auto stat = ReadProcessStat(pid_);
    const bool was_stopped = std::exchange(was_stopped_, stat && stat->state == 'T');
    return was_stopped && was_stopped_;
  }
  auto Kill() const -> void { kill(pid_, SIGKILL); }

 private:
  pid_t pid_;
  bool was_stopped_ = false;
};

}  // namespace shardc
