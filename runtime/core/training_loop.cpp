#include "runtime/core/training_loop.h"

#include <algorithm>

#include "compiler/base/text/numbers_and_lines.h"
#include "runtime/core/compare_replicas.h"
#include "runtime/core/unsaved_warning.h"

namespace shardc {

/// Returns true if a launch takes no step after that many (`--stop-after`).
static auto IsLast(const LaunchOptions& options, int64_t steps_taken) -> bool {
  return options.stop_after > 0 && steps_taken >= options.stop_after;
}

TrainingLoop::TrainingLoop(BoundRank* rank, RunCheckpoints* checkpoints, RunRecords* records)
    : rank_(*rank),
      plan_(rank->plan()),
      checkpoints_(*checkpoints),
      report_(rank, records),
      divergence_(rank->binder(), rank->execution()) {}

auto TrainingLoop::LimitTime() -> void {
  std::optional<TimeLimit::Clock::time_point> end = rank_.context().options.end_time;
  if (plan_.run.max_minutes > 0) {
    constexpr double SecondsPerMinute = 60;
    const auto most =
        rank_.context().options.begun + std::chrono::duration_cast<TimeLimit::Clock::duration>(
                                            std::chrono::duration<double>(plan_.run.max_minutes * SecondsPerMinute));
    end = end ? std::min(*end, most) : most;
  }
  if (end) {
    // A slow disk; the first save tells.
    constexpr double BytesPerSecond = 50e6;
    double bytes = 0;
    for (const Arena arena : {Arena::Persistent, Arena::SharedPersistent}) {
      bytes += static_cast<double>(plan_.arena_bytes[static_cast<size_t>(arena)]);
    }
    time_limit_ = TimeLimit(*end, Seconds{bytes / BytesPerSecond});
  }
}

auto TrainingLoop::Run(const BegunRun& begun) -> ErrorOr<ExitCode> {
  report_.NoteCompletedSteps();
  RETURN_IF_ERROR(report_.Begin(begun));
  if (begun.step >= plan_.run.steps) {
    if (rank_.leads()) {
      rank_.Say(
          begun.step == plan_.run.steps
              ? fmt::format("run {}: complete, {} of {} steps\n", plan_.run.run_id, begun.step, plan_.run.steps)
              : fmt::format("run {}: its checkpoint is of step {}, and train.steps is {}: nothing is left to do\n",
                            plan_.run.run_id, begun.step, plan_.run.steps));
    }
    RETURN_IF_ERROR(WriteTrace());
    return ExitCode::Ok;
  }
  rank_.execution().after_pass = [this](SectionKind section, int64_t done, int64_t count) -> Status {
    if (section != SectionKind::Eval) {
      return Success{};
    }
    report_.Evaluating(done, count);
    const int64_t all = rank_.tokens().num_eval_samples();
    return done == count ? Status(Success{}) : rank_.CheckStop(all * done / count, all, "sample");
  };
  begun_at_ = begun.step;
  training_ = Stopwatch();
  since_owner_check_ = Stopwatch();
  while (CompletedSteps() < plan_.run.steps) {
    ASSIGN_OR_RETURN(const auto end, StepAndLook());
    if (end) {
      return *end;
    }
  }
  RETURN_IF_ERROR(WriteTrace());
  RETURN_IF_ERROR(Fire(TriggerKind::End));
  ASSIGN_OR_RETURN(const auto end, StopIfAsked());
  if (end) {
    return *end;
  }
  RETURN_IF_ERROR(report_.End());
  return ExitCode::Ok;
}

auto TrainingLoop::StepAndLook() -> ErrorOr<std::optional<ExitCode>> {
  Trace* const trace = rank_.trace();
  RETURN_IF_ERROR(trace != nullptr ? trace->BeginStep(CompletedSteps() + 1) : Success{});
  if (IsLast(rank_.context().options, StepsTaken() + 1)) {
    rank_.scalars().RequestStop();
  }
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const auto halt, Step());
  const double seconds = watch.Elapsed().value;
  RETURN_IF_ERROR(trace != nullptr ? trace->EndStep(CompletedSteps()) : Success{});
  RETURN_IF_ERROR(TellDivergence(halt.has_value()));
  RETURN_IF_ERROR(CheckOwner());
  RETURN_IF_ERROR(report_.Step(seconds, divergence_.Skipped()));
  RETURN_IF_ERROR(report_.LookAtDevice(StepsTaken()));
  RETURN_IF_ERROR(WriteTraceIfDue(halt.has_value()));
  if (halt) {
    return Halted(*halt);
  }
  WarnOfNoSave();
  RETURN_IF_ERROR(CompareCopiesIfDue());
  RETURN_IF_ERROR(FireEvery());
  time_limit_.NoteStep(watch.Elapsed());
  return StopIfAsked();
}

auto TrainingLoop::Step() -> ErrorOr<std::optional<ExitCode>> {
  ran_at_step_.clear();
  RETURN_IF_ERROR(rank_.SetSchedules());
  time_is_near_ = rank_.leads() && time_limit_.IsNear();
  if (rank_.control().StopIsRequested() || time_is_near_) {
    rank_.scalars().RequestStop();
  }
  return rank_.RunStep();
}

auto TrainingLoop::TellDivergence(bool is_halted) -> Status {
  ASSIGN_OR_RETURN(const auto lines, divergence_.AfterStep(is_halted, checkpoints_.newest()));
  if (rank_.leads() && !lines.empty()) {
    report_.Note(lines);
  }
  return Success{};
}

auto TrainingLoop::CheckOwner() -> Status {
  // A launch that was stopped and replaced learns it here, and not at a save that may be hours away.
  constexpr Seconds BetweenLooks{5};
  if (!rank_.leads() || since_owner_check_.Elapsed() < BetweenLooks) {
    return Success{};
  }
  RETURN_IF_ERROR(report_.CheckOwned());
  RETURN_IF_ERROR(checkpoints_.CheckLease());
  since_owner_check_ = Stopwatch();
  return Success{};
}

auto TrainingLoop::WriteTraceIfDue(bool is_halted) -> Status {
  const Trace* const trace = rank_.trace();
  return is_halted || (trace != nullptr && trace->IsDue(CompletedSteps())) ? WriteTrace() : Status(Success{});
}

auto TrainingLoop::WriteTrace() -> Status {
  Trace* const trace = rank_.trace();
  if (trace == nullptr || trace->is_written()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto told, trace->Write());
  if (rank_.leads()) {
    report_.Note(told);
  }
  return Success{};
}

auto TrainingLoop::Halted(ExitCode code) -> ErrorOr<std::optional<ExitCode>> {
  if (divergence_.Skipped() == "spike") {
    // The state is sound: it is that before this step.
    RETURN_IF_ERROR(Fire(TriggerKind::Stop));
  }
  return std::optional(code);
}

auto TrainingLoop::WarnOfNoSave() -> void {
  const Seconds trained = training_.Elapsed();
  if (!rank_.leads() || has_warned_of_no_save_ || trained < rank_.context().unsaved_warning) {
    return;
  }
  has_warned_of_no_save_ = true;
  if (const auto warning = UnsavedWarning(plan_, trained)) {
    report_.Note(*warning);
  }
}

auto TrainingLoop::CompareCopiesIfDue() -> Status {
  const int64_t every = plan_.run.compare_every;
  return every > 0 && CompletedSteps() % every == 0 ? CompareCopies() : Status(Success{});
}

auto TrainingLoop::StopIfAsked() -> ErrorOr<std::optional<ExitCode>> {
  const bool is_asked = rank_.Scalar(ScalarRole::Stop) != 0 && CompletedSteps() < plan_.run.steps;
  if (!is_asked && !evaluation_was_cut_) {
    return std::optional<ExitCode>();
  }
  RETURN_IF_ERROR(WriteTrace());
  RETURN_IF_ERROR(Fire(TriggerKind::Stop));
  if (rank_.leads()) {
    TellStop();
  }
  return std::optional(ExitCode::Preempted);
}

auto TrainingLoop::TellStop() -> void {
  // A signal may have come to another host, where this rank does not see it.
  report_.Note(fmt::format(
      "step {}: stopped {}", CompletedSteps(),
      time_is_near_ ? "before the time of this launch is over"
      : IsLast(rank_.context().options, StepsTaken())
          ? fmt::format("after {} of this launch (--stop-after)", Counted(rank_.context().options.stop_after, "step"))
          : "as asked"));
  if (time_is_near_ && StepsTaken() == 1) {
    const Seconds start{report_.Time().elapsed_s - training_.Elapsed().value};
    report_.Note(
        fmt::format("note: the start took {} of that time, and left enough for one step: launch after "
                    "launch will take one; set train.max_minutes, or ask for a longer job",
                    FormatDuration(start.value)));
  }
}

auto TrainingLoop::Fire(TriggerKind kind) -> Status {
  for (const Trigger& trigger : plan_.triggers) {
    if (trigger.kind == kind) {
      RETURN_IF_ERROR(RunOnce(trigger));
    }
  }
  return Success{};
}

auto TrainingLoop::FireEvery() -> Status {
  for (const Trigger& trigger : plan_.triggers) {
    if (trigger.kind == TriggerKind::EverySteps && CompletedSteps() % trigger.every == 0) {
      RETURN_IF_ERROR(RunOnce(trigger));
    }
  }
  return Success{};
}

auto TrainingLoop::RunOnce(const Trigger& trigger) -> Status {
  const SectionKind section = trigger.section;
  if (!ran_at_step_.insert(section).second) {
    return Success{};
  }
  const bool is_save = section == SectionKind::Save;
  RETURN_IF_ERROR(is_save ? CheckBeforeSave() : Success{});
  const Stopwatch watch;
  const Status ran = rank_.RunSection(section);
  if (!ran && section == SectionKind::Eval && ran.error().code == ExitCode::Preempted) {
    evaluation_was_cut_ = true;
    if (rank_.leads()) {
      report_.Note(fmt::format("step {}: the evaluation {}, and has no loss; `shardc eval` evaluates the checkpoint",
                               CompletedSteps(), ran.error().message));
    }
    return Success{};
  }
  if (!ran) {
    const Error failure = divergence_.OfSave(ran.error(), checkpoints_.newest());
    const bool is_on_the_way = is_save && trigger.kind == TriggerKind::EverySteps;
    return is_on_the_way ? GoOnAfter(failure) : Status(failure);
  }
  if (section == SectionKind::Eval) {
    return report_.Eval(watch.Elapsed());
  }
  if (!is_save) {
    return Success{};
  }
  failed_saves_ = 0;
  const Seconds took = watch.Elapsed();
  time_limit_.NoteSave(took);
  return report_.Save(checkpoints_.writer(), took);
}

auto TrainingLoop::CheckBeforeSave() -> Status {
  RETURN_IF_ERROR(report_.CheckOwned());
  return plan_.run.compare_every > 0 ? CompareCopies() : Status(Success{});
}

static auto GoesOn(OnSaveFailure on_failure) -> bool {
  switch (on_failure) {
    case OnSaveFailure::Stop: return false;
    case OnSaveFailure::Continue: return true;
  }
  CHECK(false, "what a run does after a failed save: {}", static_cast<int>(on_failure));
}

auto TrainingLoop::GoOnAfter(const Error& save_failure) -> Status {
  constexpr int64_t MostInARow = 3;
  // Another code means that the state, the ranks or the plan are at fault.
  if (!GoesOn(plan_.run.on_failure) || save_failure.code != ExitCode::Environment) {
    return save_failure;
  }
  if (++failed_saves_ == MostInARow) {
    return Fail(save_failure.code, "{}; {} saves in a row have failed", save_failure.message, MostInARow);
  }
  if (rank_.leads()) {
    report_.Note(
        fmt::format("warning: {}; the run goes on, as `checkpoint.on_failure` is \"continue\"", save_failure.message));
  }
  // The end of the run, or a stop, saves this step again.
  ran_at_step_.erase(SectionKind::Save);
  return Success{};
}

auto TrainingLoop::CompareCopies() -> Status {
  if (compared_at_ == CompletedSteps()) {
    return Success{};
  }
  compared_at_ = CompletedSteps();
  const Status compared = CompareReplicas(rank_.binder(), StateRoles);
  if (compared || compared.error().code != ExitCode::InternalFault) {
    return compared;
  }
  const std::string& newest = checkpoints_.newest();
  return Fail(ExitCode::InternalFault, "after step {}: {}; nothing is saved of it, and the run continues from {}",
              CompletedSteps(), compared.error().message,
              newest.empty() ? "its beginning, as it has no checkpoint" : newest);
}

}  // namespace shardc
