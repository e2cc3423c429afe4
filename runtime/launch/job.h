// One launch of a plan's ranks on this host: what its ranks share, and what is put on record.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/lease.h"
#include "runtime/control/control_block.h"
#include "runtime/core/launch_options.h"
#include "runtime/core/rank_main.h"
#include "runtime/launch/scan_tokens.h"
#include "runtime/launch/stop_signals.h"
#include "runtime/meet/meeting.h"
#include "runtime/memory/arenas.h"
#include "runtime/record/attempt.h"
#include "runtime/record/run_directory.h"

namespace shardc {

/// State that all ranks of a launch share.
struct Job {
  const Plan* plan = nullptr;
  const LaunchOptions* options = nullptr;
  const RankMain* rank_main = nullptr;
  std::unique_ptr<Lease> lease;
  std::optional<RunDirectory> directory;
  std::optional<Attempt> attempt;
  RunLog only_stderr;
  /// Results of the scan of the token files.
  ScannedTokens scanned;
  /// The file of the shared memory, for processes that another launcher forked.
  Descriptor memory;
  SharedArenas arenas;
  std::unique_ptr<ControlBlock> control;
  /// The meeting of a launch over several hosts; null if all ranks share memory.
  Meeting* meeting = nullptr;
  /// On other hosts, and in other processes, than that which began the attempt: its log.
  std::optional<RunLog> joined_log;

  auto log() const -> const RunLog& { return attempt ? attempt->log() : joined_log ? *joined_log : only_stderr; }
  /// Prints a line for people.
  auto Say(const std::string& text) const -> void { log().Print(text + "\n"); }
};

/// Makes what the ranks of this host share, and takes the run directory; in a launch over several hosts process 0 takes
/// it, and all processes start or none does. `signals`: of a launcher that watches for them, or null. `meeting`: null
/// if all ranks share memory. Requires: plan, options, `rank_main` and `meeting` outlive the job. Errors: what keeps
/// the job from starting, as LaunchLocal has it.
auto PrepareJob(const Plan& plan, ControlBlock::Members members, const LaunchOptions& options,
                const RankMain& rank_main, const SignalScope* signals, Meeting* meeting) -> ErrorOr<Job>;

/// Starts the thread that keeps the lease of the run directory, if there is one: called when no rank is to be forked
/// any more.
auto KeepLease(const Job& job) -> Status;

/// Records the result of the launch. If it cannot be recorded, it prints a warning.
auto PutEndOnRecord(const Job& job, int exit_code, const std::string& error) -> void;
auto PutEndOnRecord(const Job& job, const ErrorOr<ExitCode>& result) -> void;

}  // namespace shardc
