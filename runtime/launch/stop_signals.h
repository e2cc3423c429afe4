// The signals of a job. SIGTERM, SIGUSR1 and SIGINT, and SIGHUP unless it is ignored (nohup), ask for a stop with a
// save, whichever process they reach; SIGPIPE and SIGXFSZ are ignored.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// Lets those signals raise the flag from now on, in a forked rank. A second SIGINT ends the process at once.
auto CatchStopSignals(std::atomic<bool>& stop_flag) -> void;
/// Ignores the signals that ask for a stop from now on, because the flag of CatchStopSignals goes.
auto IgnoreStopSignals() -> void;

/// In the launcher: blocks the signals that it waits for. Lets launcher and ranks ignore the signals that would end a
/// process for a failed write, because the error of the write reports the same: a process should not die of a log that
/// nobody reads any more, or of a file that reached its limit. Restores everything at the end.
class SignalScope {
 public:
  SignalScope();
  SignalScope(const SignalScope&) = delete;
  ~SignalScope();

  /// Returns the next signal, SIGCHLD included, or 0 after 100 ms.
  auto Next() const -> int;
  auto AsksForStop(int signal) const -> bool;
  /// Returns true if a signal has come that asks for a stop. The signal stays for the next caller.
  auto HasStop() const -> bool;
  /// Returns true if a signal has come that asks for a stop. The signal then counts as handled. Requires: no child runs
  /// yet.
  auto TakeStop() const -> bool;

 private:
  std::vector<int> stop_signals_;
  sigset_t set_;
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
  struct sigaction pipe_before_ {};
  struct sigaction file_size_before_ {};
};

/// Holds signals back until the process ends, so that one that comes late does not take the place of the exit code.
auto HoldSignals() -> const SignalScope&;

/// Holds signals back, as HoldSignals does, and returns what ends the waits of a meeting when this process has been
/// told to stop. A wait that is over at that moment does not end so; the next one does, or the ranks hear of the
/// signal.
auto StopsBetweenWaits() -> std::function<Status()>;

}  // namespace shardc
