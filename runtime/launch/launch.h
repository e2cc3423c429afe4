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

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/core/launch_options.h"
#include "runtime/core/rank_main.h"

namespace shardc {

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
