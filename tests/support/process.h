// A program under test: started in a process group of its own with its streams captured, signalled, and awaited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/units.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

inline auto Sleep(int milliseconds) -> void { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

struct Outcome {
  /// As a shell shows it: 128 + n for signal n. -1: it had not ended in time, and was killed.
  int status = -1;
  std::string out;
  std::string err;
  /// From Wait to the end of the process.
  Seconds waited;
  /// Every process of the group had ended 2 s after the first; of a Job, after all that it consists of.
  bool all_gone = false;
};

struct ProcessOptions {
  /// Working directory; empty: that of the test.
  std::string folder;
  /// "NAME=value", put over the test's own.
  std::vector<std::string> environment;
  /// Runs in the new process.
  std::function<void()> before_exec;
};

class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {});
  Process(const Process&) = delete;
  /// Ends the whole group.
  ~Process();

  auto pid() const -> pid_t { return pid_; }
  auto Kill(int signal) const -> void;
  auto KillGroup(int signal) const -> void;
  /// Sends the signal again and again until the process has ended.
  auto KillUntilItEnds(int signal) -> void;
  /// Those that run, in the order in which they were started: the ranks, where the process is a launcher.
  auto Children() const -> std::vector<pid_t>;
  /// Returns once there are so many; fewer if the process ends before.
  auto AwaitChildren(size_t count) -> std::vector<pid_t>;
  /// Returns true once the condition holds, false once the process has ended without it, or after Patience.
  auto Await(const std::function<bool()>& condition) -> bool;
  auto is_running() -> bool;
  /// What was written so far.
  auto out() const -> std::string { return ReadText(streams_ / "out"); }
  auto err() const -> std::string { return ReadText(streams_ / "err"); }

  /// How long anything may take that is not measured.
  static constexpr Seconds Patience{IsSanitized ? 600.0 : 60.0};

  auto Wait(Seconds deadline = Patience) -> Outcome;
  /// Of a process that has ended: waits up to 2 s until every process of its group has.
  auto AwaitAllGone() const -> bool;

 private:
  TemporaryFolder streams_;
  pid_t pid_ = 0;
  /// Of waitpid; none: -1.
  int wait_status_ = -1;
};

/// Starts, waits, and returns what came of it.
auto RunProcess(const std::vector<std::string>& command, const ProcessOptions& options = {}) -> Outcome;

/// Returns true as soon as the condition holds, false if it does not within the time.
auto AwaitTrue(const std::function<bool()>& condition, Seconds longest) -> bool;

}  // namespace shardc
