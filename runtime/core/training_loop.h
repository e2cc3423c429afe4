// The training of a rank: it runs the sections of the trigger table at their times, and after each step does what is
// due, from the look at its loss to the stop before the time is over.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "compiler/base/stopwatch.h"
#include "runtime/core/divergence.h"
#include "runtime/core/run_checkpoints.h"
#include "runtime/core/time_limit.h"
#include "runtime/core/training_report.h"

namespace shardc {

class TrainingLoop {
 public:
  /// Takes what a training works with, all of which outlives the loop.
  TrainingLoop(BoundRank* rank, RunCheckpoints* checkpoints, RunRecords* records);

  /// Takes the time that the launch has from the recipe and the launcher. Until then there is no limit.
  auto LimitTime() -> void;
  /// Takes the checkpoint that the run was resumed from, and the one before it; empty if that was the first.
  auto ResumesFrom(const std::string& checkpoint, const std::string& before) -> void {
    divergence_.ResumesFrom(checkpoint, before);
  }
  /// Runs the sections of the triggers of a kind.
  auto Fire(TriggerKind kind) -> Status;
  /// Takes the steps from where the run began to its end, or to a stop or a halt. Collective.
  auto Run(const BegunRun& begun) -> ErrorOr<ExitCode>;
  /// Runs one step: schedules, then the sections of each step. Returns the exit code of a halt, if one is due.
  auto Step() -> ErrorOr<std::optional<ExitCode>>;

 private:
  /// Runs one step and what comes after it. Returns the exit code if the run ends here.
  auto StepAndLook() -> ErrorOr<std::optional<ExitCode>>;

  // The parts that come after a step, in order.
  auto TellDivergence(bool is_halted) -> Status;
  /// Checks now and then that run directory and checkpoints are still this launch's.
  auto CheckOwner() -> Status;
  auto WriteTraceIfDue(bool is_halted) -> Status;
  /// Saves if the state is sound. Returns the exit code of the halt.
  auto Halted(ExitCode code) -> ErrorOr<std::optional<ExitCode>>;
  /// Warns once, on rank 0, of a run that saves at its end alone.
  auto WarnOfNoSave() -> void;
  auto CompareCopiesIfDue() -> Status;
  auto FireEvery() -> Status;
  /// Saves and ends the run if it was asked to stop, also within an evaluation, its time is nearly over, or it has
  /// taken the steps of a launch.
  auto StopIfAsked() -> ErrorOr<std::optional<ExitCode>>;
  auto TellStop() -> void;

  /// Writes the trace once, if one was asked for; rank 0 reports its path. Collective.
  auto WriteTrace() -> Status;
  /// Runs a section once for a number of completed steps, however many triggers name it.
  auto RunOnce(const Trigger& trigger) -> Status;
  auto CheckBeforeSave() -> Status;
  /// Returns success if the run goes on after this failure of a save on its way, which is then reported. The same on
  /// all ranks, as errors of saves are.
  auto GoOnAfter(const Error& save_failure) -> Status;
  /// Compares the bits of parameters and optimizer state on ranks that hold the same, once for a number of completed
  /// steps. Errors: as CompareReplicas, with the step and the checkpoint that the run can continue from.
  auto CompareCopies() -> Status;
  auto CompletedSteps() const -> int64_t { return rank_.CompletedSteps(); }
  /// Returns the number of steps that this launch has taken.
  auto StepsTaken() const -> int64_t { return CompletedSteps() - begun_at_; }

  BoundRank& rank_;
  const Plan& plan_;
  RunCheckpoints& checkpoints_;
  TrainingReport report_;
  Divergence divergence_;
  TimeLimit time_limit_;
  /// Rank 0's: the step that runs is the last one before the time is over.
  bool time_is_near_ = false;
  std::set<SectionKind> ran_at_step_;
  /// The number of completed steps that CompareCopies looked at last.
  int64_t compared_at_ = -1;
  /// The number of saves that failed since the last that did not.
  int64_t failed_saves_ = 0;
  /// The number of completed steps that Run began with, and the time since then.
  int64_t begun_at_ = 0;
  Stopwatch training_;
  Stopwatch since_owner_check_;
  bool has_warned_of_no_save_ = false;
  /// True once an evaluation was left for a stop. The same on all ranks.
  bool evaluation_was_cut_ = false;
};

}  // namespace shardc
