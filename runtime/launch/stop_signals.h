// The signals of a job. SIGTERM, SIGUSR1 and SIGINT, and SIGHUP unless it is ignored (nohup), ask for a stop with a
// save, whichever process they reach; SIGPIPE and SIGXFSZ are ignored.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// In a forked rank: from now on those signals raise the flag. A second SIGINT ends the process at once.
auto CatchStopSignals(std::atomic<bool>& stop_flag) -> void;
/// Ignores the signals that ask for a stop from now on, because the flag of CatchStopSignals goes.
auto IgnoreStopSignals() -> void;

/// In the launcher: blocks the signals that it waits for, and has those ignored, by launcher and ranks, that would end
/// a process for a write that failed: the write's error says the same, and a log that nobody reads any more, or a file
/// that reached its limit, is no reason to die. Puts everything back at the end.
class SignalScope {
 public:
  SignalScope();
  SignalScope(const SignalScope&) = delete;
  ~SignalScope();

  /// The next signal, SIGCHLD included, or 0 after 100 ms.
  auto Next() const -> int;
  auto AsksForStop(int signal) const -> bool;
  /// Has a signal come that asks for a stop? It stays for whoever asks next.
  auto HasStop() const -> bool;
  /// Has a signal come that asks for a stop? It counts as handled then. Requires: no child runs yet.
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
