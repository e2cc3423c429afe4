// The life of one rank: bind the plan, then train, evaluate a checkpoint or ask it for logits.
//
// Nothing is decided here that the plan does not say. Which of `first` and `restart` fires is the one question asked of
// the disk: is there a committed checkpoint of this run id?
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/bound_rank.h"
#include "runtime/core/rank_main.h"
#include "runtime/core/run_checkpoints.h"
#include "runtime/core/run_records.h"
#include "runtime/core/training_loop.h"

namespace shardc {

/// Life of a rank. Its functions that begin a run are in begin_run.cpp.
class RankRunner {
 public:
  /// Opens the data, binds what needs no checkpoint. Collective.
  static auto Create(RankContext& context) -> ErrorOr<std::unique_ptr<RankRunner>>;
  ~RankRunner() { rank_.FreeSections(); }

  /// Trains: begins or comes back, then steps to the end. Collective.
  auto Train() -> ErrorOr<ExitCode>;
  /// Saves the state that a run begins with, as the checkpoint of step 0. Errors: the folder has a checkpoint of the
  /// run. Collective.
  auto SaveFirst() -> Status;
  /// Evaluates the parameters of a checkpoint: the mean loss over the held-out samples, in nats a token. Collective.
  auto Evaluate(const std::string& checkpoint) -> ErrorOr<double>;
  /// Writes the logits of the ids, or samples ids after them, by the parameters of a checkpoint. Requires: the context
  /// has the request. Collective.
  auto Generate(const std::string& checkpoint) -> Status;

  /// Prints a line for people, on rank 0, if there is one.
  auto Note(std::string_view line) const -> void;

  // The parts of Train, for tests that look between them.

  /// Fires `load`, then `first` or `restart`; looks at what was drawn, and whether ranks that hold the same agree.
  /// Returns the number of completed steps.
  auto Begin() -> ErrorOr<int64_t>;
  /// Runs one section as it stands.
  auto RunSection(SectionKind section) -> Status { return rank_.RunSection(section); }
  /// Runs one step: schedules, then the sections of each step. Returns the exit code of a halt, if one is due.
  auto Step() -> ErrorOr<std::optional<ExitCode>> { return training_.Step(); }

  auto scalars() -> ScalarTable& { return rank_.scalars(); }
  /// Returns sums over the elements that this rank drew since it was made.
  auto drawn() const -> const IdVector<ParameterId, Drawn>& { return rank_.drawn(); }
  auto ViewOf(ValueId value) -> View { return rank_.binder().ViewOf(value); }
  auto execution() -> Execution& { return rank_.execution(); }
  auto binder() -> RankBinder& { return rank_.binder(); }
  /// Returns the function that is called in Step, between the data and the step section; unset if nothing is.
  auto after_data() -> std::function<void()>& { return rank_.after_data; }

 private:
  explicit RankRunner(RankContext* context);

  /// Opens the data and binds all sections but the one that reads a checkpoint. Collective.
  auto Bind() -> Status;
  /// Compares plan and versions with those of the other ranks. Collective.
  auto AgreeWithOthers() -> Status;
  /// Chooses the algorithms of products by measurement, if the launch was asked to.
  auto Tune() -> Status;
  /// Compares, on rank 0, the checkpoint that was found with the last save on record. Collective.
  auto CompareWithSaves(const std::optional<CheckpointInfo>& newest) -> Status;
  /// Starts a run for the first time: from scratch, or from the plan's seed.
  auto StartFirst() -> Status;
  /// Makes the first state. `seed`: the reader of the plan's seed; null if it has none.
  auto MakeFirstState(CheckpointReader* seed) -> Status;
  /// Reports the first start, and what the state was made from. `reader`: that of its seed; null if it has none. For
  /// rank 0.
  auto TellFirst(const CheckpointReader* reader) const -> void;
  /// Brings the state back from a checkpoint of this run.
  auto Resume(const CheckpointInfo& newest) -> Status;
  /// Reports from which checkpoint the run continues, and what has changed since. For rank 0.
  auto TellResumed(const CheckpointInfo& newest) const -> void;
  /// Runs what evaluates samples, which ends between them if the launch is asked to stop, and shows how far it is.
  /// Errors: Preempted, on all ranks alike.
  auto Answer(const std::function<Status()>& run) -> Status;
  /// Loads the parameters of a checkpoint, and compares those of ranks that hold the same.
  auto LoadParameters(const std::string& checkpoint) -> Status;

  RankContext& context_;
  BoundRank rank_;
  RunCheckpoints checkpoints_;
  RunRecords records_;
  TrainingLoop training_;
  /// The time that Create took.
  Seconds bind_time_;
  BegunRun begun_;
};

/// Runs a rank as shardc-run does: trains, evaluates or only binds, as the context says.
auto RunRank(RankContext& context) -> ErrorOr<ExitCode>;

}  // namespace shardc
