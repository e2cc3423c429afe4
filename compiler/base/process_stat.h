// What the kernel says of a process. Source: proc(5), /proc/PID/stat.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace shardc {

struct ProcessStat {
  /// At most 15 bytes: of the program, unless the process has set another one.
  std::string name;
  /// 'R', 'S', 'D', 'T', 'Z' (ended, and nobody has waited for it), 'X', ...
  char state = '?';
  int64_t parent = 0;
  int64_t num_threads = 0;
  /// PF_* of the kernel's linux/sched.h.
  uint64_t flags = 0;
  /// In clock ticks since the boot: together with the number it names one process.
  int64_t start = 0;
};

/// None if there is no process with this number, or if it is hidden.
auto ReadProcessStat(int64_t pid) -> std::optional<ProcessStat>;

/// When the calling process began, to a clock tick. An exec begins no new process. Now, if the kernel does not tell.
auto StartOfThisProcess() -> std::chrono::steady_clock::time_point;

}  // namespace shardc
