#include "compiler/cluster/guard.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "compiler/base/process_stat.h"
#include "compiler/base/standard_streams.h"
#include "compiler/base/waited_time.h"
#include "compiler/base/where_and_when.h"

namespace shardc {

/// In seconds: how much longer than the timeout the guard waits. Ranks that have waited in vain have ended by then.
static constexpr double Grace = 4;
static constexpr auto LookEvery = std::chrono::milliseconds(500);

namespace {

/// The process that is guarded.
struct Guarded {
  pid_t pid = 0;
  /// "process 1 of 4 (node1)".
  std::string name;
  /// The name of the launcher, and the number of its process if that is the parent of this one, else 0.
  std::string launcher;
  pid_t launcher_pid = 0;
};

}  // namespace

/// Returns true if a rank that the process forked is neither stopped nor ended, and also if the kernel does not report
/// its children. A rank has the name of its parent; the store and the guard have names of their own.
static auto HasRunningRank(pid_t process, const std::string& name) -> bool {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  if (!children) {
    return true;
  }
  for (pid_t child = 0; children >> child;) {
    const auto stat = ReadProcessStat(child);
    if (stat && stat->name == name && stat->state != 'T' && stat->state != 'Z') {
      return true;
    }
  }
  return false;
}

/// Blocks the signals that launchers send to all processes of a group: the guarded process may take its time to save.
/// The signals of job control still stop the guard together with the group.
static auto HoldSignals() -> void {
  sigset_t held;
  sigfillset(&held);
  for (const int signal : {SIGTSTP, SIGTTIN, SIGCONT}) {
    sigdelset(&held, signal);
    std::signal(signal, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &held, nullptr);
}

/// Writes a warning, unless nobody reads it: stderr may be a full pipe to a launcher that is stopped too.
static auto Warn(const std::string& text) -> void {
  const std::string line = fmt::format("warning: {}\n", text);
  pollfd watched{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&watched, 1, 0) == 1) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
}

[[noreturn]] static auto Guard(Guarded guarded, Seconds timeout) -> void {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "shardc-guard");
  HoldSignals();
  CloseAllBut({STDERR_FILENO});
  const std::chrono::duration<double> longest(timeout.value + Grace);
  WaitedTime stopped;
  while (getppid() == guarded.pid) {
    std::this_thread::sleep_for(LookEvery);
    const auto so_far = std::chrono::duration<double>(stopped.Look());
    const auto stat = ReadProcessStat(guarded.pid);
    if (stat && guarded.launcher_pid != 0 && stat->parent != guarded.launcher_pid) {
      guarded.launcher_pid = 0;
      Warn(fmt::format("{}: {}, which started it, is gone, so it is told to save and end (SIGTERM)", guarded.name,
                       guarded.launcher));
      kill(guarded.pid, SIGTERM);
    }
    // 't' is a process that a debugger looks at.
    if (!stat || stat->state != 'T') {
      stopped.Restart();
    } else if (so_far >= longest && !HasRunningRank(guarded.pid, stat->name)) {
      Warn(
          fmt::format("{} has been stopped for {:.0f} s (SIGSTOP), and {}", guarded.name, so_far.count(),
                      guarded.pid == 1 ? "can only be ended from outside, as process 1 of its container" : "is ended"));
      kill(guarded.pid, SIGKILL);
      break;
    }
  }
  _exit(0);
}

/// Returns "process 1 of 4 (node1)", or as much of it as is known.
static auto NameOf(const LaunchPlace& place) -> std::string {
  return place.process < 0 || place.num_processes == 0
             ? fmt::format("process {} ({})", getpid(), HostName())
             : fmt::format("process {} of {} ({})", place.process, place.num_processes, HostName());
}

auto StartGuard(const LookUp& look_up, Seconds timeout) -> bool {
  static pid_t guarded_pid = 0;
  if (guarded_pid == getpid()) {
    return true;
  }
  const auto found = FindPlace(look_up);
  // A process whose variables are wrong tells the others.
  const auto place = found ? *found : FindMeetingPoint(look_up);
  if (!place) {
    return false;
  }
  // /proc may be that of another pid namespace.
  if (const auto own = ReadProcessStat(getpid()); !own || own->parent != getppid()) {
    return false;
  }
  const Guarded guarded{.pid = getpid(),
                        .name = NameOf(*place),
                        .launcher = place->launcher,
                        .launcher_pid = place->launcher_is_parent ? getppid() : 0};
  const pid_t guard = fork();
  if (guard == 0) {
    Guard(guarded, timeout);
  }
  guarded_pid = guard > 0 ? guarded.pid : 0;
  return guard > 0;
}

}  // namespace shardc
