// Which process a lease belongs to, and what can be said about that process from here: host, boot, pid namespace,
// number and start time. A number alone says little: numbers are used again, and each container counts its own.
#pragma once

#include <cstdint>
#include <string>

namespace shardc {

struct ProcessIdentity {
  std::string host;
  /// /proc/sys/kernel/random/boot_id; empty where it cannot be read.
  std::string boot_id;
  /// "pid:[4026531836]"; empty where it cannot be read.
  std::string pid_namespace;
  int64_t pid = 0;
  /// In clock ticks since the boot; 0 where it cannot be read.
  int64_t start = 0;

  friend auto operator==(const ProcessIdentity&, const ProcessIdentity&) -> bool = default;
};

auto ThisProcess() -> ProcessIdentity;

/// Unknown: a process of another host, boot or pid namespace. Ending: it has been killed, and is not gone yet. Gone: no
/// code of it runs any more.
enum class ProcessState : uint8_t { Unknown, Running, Stopped, Ending, Gone };

auto StateOf(const ProcessIdentity& process) -> ProcessState;

}  // namespace shardc
