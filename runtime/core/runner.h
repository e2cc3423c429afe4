// The life of one rank: bind the plan, begin or come back, run the trigger table to its end.
//
// Nothing is decided here that the plan does not say. Which of `first` and `restart` fires is the one question asked of
// the disk: is there a committed checkpoint of this run id?
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "compiler/expr/step_evaluator.h"
#include "compiler/ops/step_flops.h"
#include "compiler/plan/init_record.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/core/divergence.h"
#include "runtime/core/logits_watch.h"
#include "runtime/core/program.h"
#include "runtime/core/rank_binder.h"
#include "runtime/core/rank_main.h"
#include "runtime/core/run_records.h"
#include "runtime/core/time_limit.h"
#include "runtime/core/trace.h"
#include "runtime/data/token_reader.h"
#include "runtime/device/clock_limits.h"
#include "runtime/metrics/progress.h"

namespace shardc {

/// The parts that begin a run are in begin_run.cpp, those that train in train_run.cpp, those that ask a checkpoint for
/// logits in generate.cpp.
class RankRunner {
 public:
  /// Opens the data, binds what needs no checkpoint. Collective.
  static auto Create(RankContext& context) -> ErrorOr<std::unique_ptr<RankRunner>>;
  ~RankRunner();

  /// Trains: begins or comes back, then steps to the end. Collective.
  auto Train() -> ErrorOr<ExitCode>;
  /// Evaluates the parameters of a checkpoint: the mean loss over the held-out samples, in nats a token. Collective.
  auto Evaluate(const std::string& checkpoint) -> ErrorOr<double>;
  /// Writes the logits of the ids, or samples ids after them, by the parameters of a checkpoint. Requires: the context
  /// has the request. Collective.
  auto Generate(const std::string& checkpoint) -> Status;

  // The parts of Train, for tests that look between them.

  /// Fires `load`, then `first` or `restart`; looks at what was drawn, and whether ranks that hold the same agree. The
  /// number of completed steps.
  auto Begin() -> ErrorOr<int64_t>;
  /// Runs one section as it stands.
  auto RunSection(SectionKind section) -> Status;
  /// Runs one step: schedules, then the sections of each step. Returns the exit code of a halt, if one is due.
  auto Step() -> ErrorOr<std::optional<ExitCode>>;

  auto scalars() -> ScalarTable& { return scalars_; }
  /// Returns sums over the elements that this rank drew since it was made.
  auto drawn() const -> const IdVector<ParameterId, Drawn>& { return drawn_; }
  auto ViewOf(ValueId value) -> View { return binder_.ViewOf(value); }
  auto execution() -> Execution& { return execution_; }
  auto binder() -> RankBinder& { return binder_; }

  /// Called in Step, between the data and the step section.
  std::function<void()> after_data;

 private:
  explicit RankRunner(RankContext& context);

  /// Reports on the run at its end. Collective.
  auto Report() -> Status;
  auto Fire(TriggerKind kind) -> Status;
  auto FireEvery() -> Status;
  /// Compares the bits of parameters and optimizer state on ranks that hold the same, once for a number of completed
  /// steps. Errors: as CompareReplicas, with the step and the checkpoint that the run can continue from.
  auto CompareCopies() -> Status;
  /// Runs a section once for a number of completed steps, however many triggers name it.
  auto RunOnce(const Trigger& trigger) -> Status;
  /// Returns success where the run goes on after this failure of a save on its way, which is told then. The same on all
  /// ranks, as errors of saves are.
  auto GoOnAfter(const Error& save_failure) -> Status;
  /// Takes the lease of the checkpoint directory, for as long as this runner lives.
  auto OwnCheckpointDirectory() -> Status;
  /// Opens the checkpoint and binds the restore section, which reads it when it runs.
  auto OpenCheckpoint(const std::string& path, ReadPurpose purpose) -> Status;
  /// Loads the parameters of a checkpoint, and compares those of ranks that hold the same.
  auto LoadParameters(const std::string& checkpoint) -> Status;
  auto WriteLogits(const GenerateRequest& request) -> Status;
  auto SampleIds(const GenerateRequest& request) -> Status;
  /// Starts a run for the first time: from scratch, or from the plan's seed.
  auto StartFirst() -> Status;
  /// Brings the state back from a checkpoint of this run.
  auto Resume(const CheckpointInfo& newest) -> Status;
  /// Returns the metrics of this role, one per head.
  auto TermsOf(ScalarRole role) const -> std::vector<HeadLoss>;
  /// Returns the loss of a step or an evaluation; NaN if no position had a target, whatever the number of heads.
  auto LossOf(ScalarRole whole, ScalarRole term) const -> double;
  /// Returns the loss of the evaluation that has run; nothing if no held-out position has a target.
  auto EvalLoss() -> ErrorOr<std::optional<double>>;
  /// Warns, once per launch, of a step without a target. For rank 0.
  auto WarnOfNoTarget(double loss) -> void;
  /// Stores the number of completed steps for the launcher, which outlives this rank.
  auto NoteProgress() -> void;
  auto Time() const -> LineTime;
  /// Writes the trace once, if one was asked for; rank 0 reports its path. Collective.
  auto WriteTrace() -> Status;
  /// Tells how much memory of the device is taken, and puts it on record. For rank 0, after the first step of a launch.
  auto TellMemory() -> Status;
  /// Tells, once per launch, each limit that keeps the clocks of this rank's GPU low; those that are usual, of rank 0.
  auto TellClockLimits() -> void;
  auto LimitTime() -> void;
  auto Record(double seconds) -> Status;
  /// Compares, on rank 0, the checkpoint that was found with the last save on record. Collective.
  auto CompareWithSaves(const std::optional<CheckpointInfo>& newest) -> Status;
  /// Prints whole lines for people.
  auto Say(std::string_view lines) const -> void;
  auto CompletedSteps() const -> int64_t;
  /// Returns the path of this run's newest checkpoint; empty if the run has none.
  auto NewestCheckpoint() const -> const std::string&;
  auto leads() const -> bool { return context_.rank == 0; }

  RankContext& context_;
  const Plan& plan_;
  /// In guard mode.
  std::unique_ptr<Guard> guard_;
  Execution execution_;
  /// Graphs of the launches of a step; null if ops launch one by one.
  std::unique_ptr<LaunchGraphs> graphs_;
  ScalarTable scalars_;
  IdVector<ParameterId, Drawn> drawn_;
  /// After a first start: what was drawn, and the manifest of the seed where parameters were loaded.
  std::optional<InitRecord> realised_;
  std::string seed_manifest_;
  RankServices services_;
  RankBinder binder_;
  double bind_seconds_ = 0;
  std::unique_ptr<TokenReader> tokens_;
  std::unique_ptr<CheckpointReader> reader_;
  /// Rank 0's. The writer looks at it.
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<Progress> progress_;
  std::string checkpoint_dir_;
  /// The checkpoint that the state came back from.
  std::string restored_from_;
  /// The number of completed steps that CompareCopies looked at last.
  int64_t compared_at_ = -1;
  /// The number of saves that failed since the last that did not.
  int64_t failed_saves_ = 0;
  Divergence divergence_;
  /// The trace, if one was asked for.
  std::unique_ptr<Trace> trace_;
  /// The logits, if they are asked for.
  std::unique_ptr<LogitsWatch> logits_;
  /// Memory of the device after the second step.
  std::optional<DeviceMemory> memory_after_two_;
  ClockLimits clock_limits_;
  /// Operations per second that a rank can do at most, by the recipe or by the card; 0 if neither says.
  double peak_flops_ = 0;
  /// Operations of a step on this rank, if the peak is known.
  StepFlops flops_;
  TimeLimit time_limit_;
  /// Rank 0's: the step that runs is the last one before the time is over.
  bool time_is_near_ = false;
  /// True once rank 0 has warned of a step without a target.
  bool has_warned_of_no_target_ = false;
  RunRecords records_;
  AttemptStart start_;
  std::array<std::optional<Program>, NumSections> programs_;
  std::vector<std::pair<ScalarId, StepEvaluator>> schedules_;
  std::set<SectionKind> ran_at_step_;
  /// Runs of each section.
  std::array<int64_t, NumSections> runs_{};
};

/// Runs a rank as shardc-run does: trains, evaluates or only binds, as the context says.
auto RunRank(RankContext& context) -> ErrorOr<ExitCode>;

}  // namespace shardc
