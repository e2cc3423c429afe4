// Starts the ranks of a plan on this host and sees them through: as processes forked from one launcher (the default),
// or as threads of this process (tests). A rank that fails takes the job down within seconds, its own error first.
//
// A launch that trains is an attempt of its run, on record in the run directory from before the first rank to after the
// last.
//
// Processes. Control block and shared arenas are made before the fork. The launcher makes no thread before it.
// After it the launcher has threads that keep the run directory's lease and, in a launch over hosts, watch the job's
// store. A signal (SIGTERM, SIGUSR1, SIGINT, and SIGHUP unless it is ignored) to any rank or to the launcher raises one
// flag for all, and the run stops at the next step boundary; a second SIGINT ends at once. A rank that dies is marked
// in the control block, where every wait of the others sees it. Ranks die with their launcher.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/timeout.h"
#include "compiler/base/units.h"
#include "compiler/plan/plan.h"
#include "runtime/core/rank_main.h"
#include "runtime/record/attempt.h"

namespace shardc {

struct LaunchOptions {
  /// Made where missing, and this launch's alone, unless a checkpoint is evaluated. Empty: none.
  std::string run_dir;
  /// For the record.
  AttemptRequest request;
  std::string eval_checkpoint;
  std::optional<GenerateRequest> generate;
  /// Why there is no plan, in a process whose launch others wait for.
  std::optional<Error> refused;
  bool refused_is_told = false;
  /// Every process of the launch refuses it, and waits for no other.
  bool refused_by_all = false;
  TraceRequest trace;
  TuneRequest tune;
  bool graphs = false;
  bool dry = false;
  bool json = false;
  /// The hosts are played by one machine: a rank has the number there that it has in the mesh.
  bool hosts_are_played = false;
  /// DevicePlace::shuffles.
  bool shuffles = false;
  /// When the launch began: `train.max_minutes` counts from then.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  /// When the launch has to be over, by whoever gave it the machines.
  std::optional<std::chrono::steady_clock::time_point> end_time;
  /// How long a rank waits for its peers in a collective.
  Seconds timeout = DefaultTimeout;
  /// How long the others have to end by themselves after the first failure. A rank that is stopped (SIGSTOP) is killed
  /// a second later, so the whole job ends within `timeout` + 5 s.
  Seconds grace{3};
};

/// Forks one process a rank and waits for all.
/// Returns the code that the ranks agreed on, or, errors having been printed, that of the first rank that failed
/// (ExitCode::Environment for a killed one).
/// Errors: what keeps the job from starting: DoesNotFit, Environment (too many ranks, run directory in use, fork).
auto LaunchLocal(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode>;

class Meeting;

/// Starts the ranks of this host in a launch over several hosts, which have one process each.
auto LaunchHost(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, Meeting& meeting)
    -> ErrorOr<ExitCode>;

/// Becomes one rank, in a launch that has a process for each rank.
auto LaunchRank(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, Meeting& meeting)
    -> ErrorOr<ExitCode>;

/// Forks a process for each host of the plan, which starts the ranks of that host: one machine plays the hosts of a
/// plan whose ranks communicate over a network.
auto LaunchPlayedHosts(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode>;

/// Runs the ranks as threads, for tests. Installs no signal handlers.
auto LaunchThreads(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode>;

}  // namespace shardc
