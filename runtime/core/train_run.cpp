// The training of a rank: its steps to the end of the run, what is told and written after each, and why it ends early.
#include <algorithm>
#include <cmath>

#include "compiler/base/host_and_time.h"
#include "compiler/base/stopwatch.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "runtime/core/compare_traffic.h"
#include "runtime/core/compute_threads.h"
#include "runtime/core/run_report.h"
#include "runtime/core/runner.h"
#include "runtime/core/unsaved_warning.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

auto RankRunner::NoteProgress() -> void {
  if (leads()) {
    context_.control->SetCompletedSteps(CompletedSteps());
  }
}

auto RankRunner::Time() const -> LineTime {
  return {
      .utc = UtcNow(),
      .elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - context_.options.begun).count()};
}

auto RankRunner::WriteTrace() -> Status {
  if (trace_ == nullptr || trace_->is_written()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto told, trace_->Write());
  if (leads()) {
    progress_->Note(told);
  }
  return Success{};
}

auto RankRunner::Record(double seconds) -> Status {
  if (!leads()) {
    return Success{};
  }
  NoteProgress();
  const auto scalar = [&](ScalarRole role) { return scalars_[plan_.ScalarOf(role)]; };
  const auto utilisation = [&](Flops flops) {
    return peak_flops_ > 0 ? std::optional(static_cast<double>(flops.value) / (seconds * peak_flops_)) : std::nullopt;
  };
  const StepMetrics metrics{.step = CompletedSteps(),
                            .loss = LossOf(ScalarRole::Loss, ScalarRole::TermLoss),
                            .grad_norm = scalar(ScalarRole::GradNorm),
                            .lr = scalar(ScalarRole::Lr),
                            .step_ms = seconds * 1e3,
                            .tokens_per_s = static_cast<double>(plan_.run.tokens_per_step) / seconds,
                            .tokens = CompletedSteps() * plan_.run.tokens_per_step,
                            .time = Time(),
                            .resident_bytes = MeasureResident().value,
                            .arena_bytes = ReservedBytes(plan_).value,
                            .mfu = utilisation(flops_.model),
                            .hfu = utilisation(flops_.model + flops_.recompute),
                            .skipped = std::string(divergence_.Skipped()),
                            .terms = TermsOf(ScalarRole::TermLoss)};
  progress_->Step(metrics);
  WarnOfNoTarget(metrics.loss);
  return records_.WriteStep(metrics);
}

auto RankRunner::WarnOfNoTarget(double loss) -> void {
  // If the loss is NaN for another reason, the gradient is not finite, and the step is skipped.
  if (has_warned_of_no_target_ || !std::isnan(loss) || !divergence_.Skipped().empty()) {
    return;
  }
  has_warned_of_no_target_ = true;
  progress_->Note(fmt::format(
      "warning: step {}: no position of the batch has a target, so the step has no loss and its gradient is "
      "0; the optimizer makes its update all the same (this warning comes once)",
      CompletedSteps()));
}

auto RankRunner::TellMemory() -> Status {
  const auto use = leads() ? MeasureDevice(plan_, *context_.device, records_.machine()) : std::nullopt;
  if (!use) {
    return Success{};
  }
  progress_->Note(DeviceUseText(*use));
  return records_.PutMemory(*use);
}

auto RankRunner::TellClockLimits() -> void {
  for (const auto& [is_warning, text] : clock_limits_.Look()) {
    const std::string line = fmt::format("{}the GPU of rank {} {}", is_warning ? "warning: " : "", context_.rank, text);
    if (leads()) {
      progress_->Note(line);
    } else if (is_warning) {
      Say(line + "\n");
    }
  }
}

auto RankRunner::LimitTime() -> void {
  std::optional<TimeLimit::Clock::time_point> end = context_.options.end_time;
  if (plan_.run.max_minutes > 0) {
    constexpr double SecondsPerMinute = 60;
    const auto most =
        context_.options.begun + std::chrono::duration_cast<TimeLimit::Clock::duration>(
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

auto RankRunner::Train() -> ErrorOr<ExitCode> {
  LimitTime();
  ASSIGN_OR_RETURN(const auto begun, Begin());
  NoteProgress();
  if (leads()) {
    ASSIGN_OR_RETURN(const auto sources, SourcesText(*tokens_, plan_.run.steps));
    Say(sources);
    RETURN_IF_ERROR(records_.Begin(start_, realised_, seed_manifest_, begun));
    progress_ = std::make_unique<Progress>(plan_.run.steps, plan_.run.log_every, *context_.log);
  }
  if (begun >= plan_.run.steps) {
    if (leads()) {
      Say(begun == plan_.run.steps
              ? fmt::format("run {}: complete, {} of {} steps\n", plan_.run.run_id, begun, plan_.run.steps)
              : fmt::format("run {}: its checkpoint is of step {}, and train.steps is {}: nothing is left to do\n",
                            plan_.run.run_id, begun, plan_.run.steps));
    }
    RETURN_IF_ERROR(WriteTrace());
    return ExitCode::Ok;
  }
  const ScalarId stop = plan_.ScalarOf(ScalarRole::Stop);
  const int64_t most_steps = context_.options.stop_after;
  const Stopwatch training;
  bool has_warned = !leads();
  Stopwatch since_look;
  while (CompletedSteps() < plan_.run.steps) {
    if (trace_) {
      RETURN_IF_ERROR(trace_->BeginStep(CompletedSteps() + 1));
    }
    const bool is_last = most_steps > 0 && CompletedSteps() + 1 >= begun + most_steps;
    if (is_last) {
      scalars_.RequestStop();
    }
    const Stopwatch watch;
    ASSIGN_OR_RETURN(const auto halt, Step());
    const double seconds = watch.Elapsed().value;
    if (trace_) {
      RETURN_IF_ERROR(trace_->EndStep(CompletedSteps()));
    }
    ASSIGN_OR_RETURN(const auto divergence, divergence_.AfterStep(halt.has_value(), NewestCheckpoint()));
    if (leads() && !divergence.empty()) {
      progress_->Note(divergence);
    }
    // A launch that was stopped and replaced learns it here, and not at a save that may be hours away.
    if (constexpr Seconds BetweenLooks{5}; leads() && since_look.Elapsed() >= BetweenLooks) {
      RETURN_IF_ERROR(records_.CheckOwned());
      RETURN_IF_ERROR(lease_->Check());
      since_look = Stopwatch();
    }
    RETURN_IF_ERROR(Record(seconds));
    if (CompletedSteps() == begun + 1) {
      RETURN_IF_ERROR(TellMemory());
    }
    if (CompletedSteps() % std::max<int64_t>(1, plan_.run.log_every) == 0) {
      TellClockLimits();
    }
    if (CompletedSteps() == 2) {
      memory_after_two_ = context_.device->MeasureMemory();
    }
    if (halt || (trace_ && trace_->IsDue(CompletedSteps()))) {
      RETURN_IF_ERROR(WriteTrace());
    }
    if (halt) {
      if (divergence_.Skipped() == "spike") {
        // The state is sound: it is that before this step.
        RETURN_IF_ERROR(Fire(TriggerKind::Stop));
      }
      return *halt;
    }
    if (const Seconds trained = training.Elapsed(); !has_warned && trained >= context_.unsaved_warning) {
      has_warned = true;
      if (const auto warning = UnsavedWarning(plan_, trained)) {
        progress_->Note(*warning);
      }
    }
    if (plan_.run.compare_every > 0 && CompletedSteps() % plan_.run.compare_every == 0) {
      RETURN_IF_ERROR(CompareCopies());
    }
    RETURN_IF_ERROR(FireEvery());
    time_limit_.NoteStep(watch.Elapsed());
    if (scalars_[stop] != 0 && CompletedSteps() < plan_.run.steps) {
      RETURN_IF_ERROR(WriteTrace());
      RETURN_IF_ERROR(Fire(TriggerKind::Stop));
      if (leads()) {
        // A signal may have come to another host, where this rank does not see it.
        progress_->Note(
            fmt::format("step {}: stopped {}", CompletedSteps(),
                        time_is_near_ ? "before the time of this launch is over"
                        : is_last ? fmt::format("after {} of this launch (--stop-after)", Counted(most_steps, "step"))
                                  : "as asked"));
        if (time_is_near_ && CompletedSteps() == begun + 1) {
          const Seconds start{Time().elapsed_s - training.Elapsed().value};
          progress_->Note(
              fmt::format("note: the start took {} of that time, and left enough for one step: launch after "
                          "launch will take one; set train.max_minutes, or ask for a longer job",
                          FormatDuration(start.value)));
        }
      }
      return ExitCode::Preempted;
    }
  }
  RETURN_IF_ERROR(WriteTrace());
  RETURN_IF_ERROR(Fire(TriggerKind::End));
  RETURN_IF_ERROR(Report());
  return ExitCode::Ok;
}

auto RankRunner::Report() -> Status {
  ASSIGN_OR_RETURN(const auto sent, CompareTraffic(*context_.comm, *context_.control, PlannedTraffic(plan_, runs_)));
  ASSIGN_OR_RETURN(const auto memory, GatherMemory(*context_.control, *context_.device));
  if (leads()) {
    ASSIGN_OR_RETURN(const auto own, MemoryText(context_.rank, *context_.device, memory_after_two_, guard_.get()));
    progress_->Finish();
    Say(own);
    Say(sent);
    Say(guard_ == nullptr ? JobMemoryText(plan_, memory, context_.launcher) : "");
  }
  // The launcher's memory and that of each rank are one sum as long as all of them live.
  return context_.control->Barrier(AxisSet::All());
}

}  // namespace shardc
