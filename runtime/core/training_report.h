// Reports of a training to people and records while it continues: its steps, evaluations and saves, the memory and
// the clocks of the device, and warnings that come once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/ops/step_flops.h"
#include "runtime/core/bound_rank.h"
#include "runtime/core/run_records.h"
#include "runtime/device/clock_limits.h"
#include "runtime/metrics/progress.h"

namespace shardc {

class TrainingReport {
 public:
  /// Takes the rank and the records, which outlive the report.
  TrainingReport(BoundRank* rank, RunRecords* records);

  /// Stores the number of completed steps for the launcher, which outlives this rank. For rank 0.
  auto NoteCompletedSteps() -> void;
  /// Reports on rank 0 what the run begins with, and records it.
  auto Begin(const BegunRun& begun) -> Status;
  /// Returns true on rank 0 from Begin on.
  auto is_open() const -> bool { return progress_ != nullptr; }
  /// Reports a line. Requires: is_open.
  auto Note(const std::string& line) -> void { progress_->Note(line); }
  /// Checks on rank 0 that the records are still this launch's.
  auto CheckOwned() const -> Status { return is_open() ? records_.CheckOwned() : Status(Success{}); }

  /// Reports and records a step. `skipped`: why its update was left out; empty if it was made.
  auto Step(double seconds, std::string_view skipped) -> Status;
  /// Shows how many samples of an evaluation are done, after so many of its passes.
  auto Evaluating(int64_t passes, int64_t all_passes) -> void;
  /// Reports and records an evaluation that has run, in that time.
  auto Eval(Seconds took) -> Status;
  /// Reports and records a save that `writer` has committed, in that time.
  auto Save(const CheckpointWriter& writer, Seconds took) -> Status;
  /// Looks at the memory of the device after each of the first steps, and now and then at its clocks. `num_steps`: how
  /// many steps this launch has run.
  auto LookAtDevice(int64_t num_steps) -> Status;
  /// Returns the time that this launch has taken.
  auto Time() const -> LineTime;
  /// Reports on the run at its end. Collective.
  auto End() -> Status;

 private:
  /// Returns the time of the evaluations and saves that are due from the end of this step on. `step`: the time of a
  /// step.
  auto TimeOfDue(Seconds step) -> Seconds;
  /// Warns, once per launch, of a step without a target.
  auto WarnOfNoTarget(double loss, std::string_view skipped) -> void;
  /// Reports how much memory of the device is taken, and records it. For rank 0.
  auto TellMemory() -> Status;
  /// Reports, once per launch, each limit that keeps the clocks of this rank's GPU low; those that are usual, of rank
  /// 0.
  auto TellClockLimits() -> void;

  BoundRank& rank_;
  const Plan& plan_;
  RunRecords& records_;
  std::unique_ptr<Progress> progress_;
  ClockLimits clock_limits_;
  /// Operations per second that a rank can do at most, by the recipe or by the card; 0 if neither says.
  double peak_flops_ = 0;
  /// Operations of a step on this rank, if the peak is known.
  StepFlops flops_;
  /// Memory of the device after the second step.
  std::optional<DeviceMemory> memory_after_two_;
  /// Times of the last evaluation and the last save; unset before the first.
  std::optional<Seconds> eval_time_;
  std::optional<Seconds> save_time_;
  /// True once rank 0 has warned of a step without a target.
  bool has_warned_of_no_target_ = false;
};

}  // namespace shardc
