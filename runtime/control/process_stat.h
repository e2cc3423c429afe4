// What the kernel says of a process. Source: proc(5), /proc/PID/stat.
#pragma once

#include <cstdint>
#include <optional>

namespace shardc {

struct ProcessStat {
  /// 'R', 'S', 'D', 'T', 'Z' (ended, and nobody has waited for it), 'X', ...
  char state = '?';
  int64_t num_threads = 0;
  /// PF_* of the kernel's linux/sched.h.
  uint64_t flags = 0;
  /// In clock ticks since the boot: together with the number it names one process.
  int64_t start = 0;
};

/// None if there is no process with this number, or if it is hidden.
auto ReadProcessStat(int64_t pid) -> std::optional<ProcessStat>;

}  // namespace shardc
