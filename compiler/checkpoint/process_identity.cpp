#include "compiler/checkpoint/process_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "compiler/base/host_and_time.h"
#include "compiler/base/process_stat.h"

namespace shardc {

namespace {

auto ReadProc(const std::string& path) -> std::string {
  std::ifstream file(path);
  // An iterator over the buffer would throw if the process ends between open and read.
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

/// Returns true for a process that was sent SIGKILL, which may wait for a disk or a processor before it ends.
auto IsKilled(int64_t pid) -> bool {
  std::istringstream lines(ReadProc(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:")) {
      const uint64_t pending = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
      if ((pending >> (SIGKILL - 1) & 1) != 0) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

auto ThisProcess() -> ProcessIdentity {
  ProcessIdentity process;
  process.host = HostName();
  process.boot_id = ReadProc("/proc/sys/kernel/random/boot_id");
  process.boot_id.erase(std::min(process.boot_id.size(), process.boot_id.find('\n')));
  std::array<char, 256> text{};
  const ssize_t length = readlink("/proc/self/ns/pid", text.data(), text.size());
  process.pid_namespace.assign(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
  process.pid = getpid();
  const auto stat = ReadProcessStat(process.pid);
  process.start = stat ? stat->start : 0;
  return process;
}

auto StateOf(const ProcessIdentity& process) -> ProcessState {
  const ProcessIdentity here = ThisProcess();
  // Where the start time cannot be read here, /proc is not as it should be, and says nothing about others either.
  if (here.boot_id.empty() || here.pid_namespace.empty() || here.start == 0 || process.start == 0 ||
      here.boot_id != process.boot_id || here.pid_namespace != process.pid_namespace) {
    return ProcessState::Unknown;
  }
  // PF_EXITING of the kernel's linux/sched.h.
  constexpr uint64_t Exiting = 0x4;
  const auto stat = ReadProcessStat(process.pid);
  if (!stat) {
    // A process of another user may be hidden; the number is free only if kill says so.
    return kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH ? ProcessState::Gone : ProcessState::Unknown;
  }
  if (stat->start != process.start || stat->state == 'X') {
    return ProcessState::Gone;
  }
  if (stat->state == 'Z') {
    // The first thread has ended; others may still be about to.
    return stat->num_threads > 1 ? ProcessState::Ending : ProcessState::Gone;
  }
  if ((stat->flags & Exiting) != 0 || IsKilled(process.pid)) {
    return ProcessState::Ending;
  }
  return stat->state == 'T' || stat->state == 't' ? ProcessState::Stopped : ProcessState::Running;
}

}  // namespace shardc
