#include "runtime/core/training_report.h"

#include <algorithm>
#include <cmath>

#include "compiler/base/host_and_time.h"
#include "compiler/plan/triggers.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/core/compare_traffic.h"
#include "runtime/core/run_report.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

static auto PeakFlopsOf(const Plan& plan, const MachineRow* machine) -> double {
  return plan.run.peak_flops > 0 ? plan.run.peak_flops : machine == nullptr ? 0 : machine->peak_bf16.value;
}

TrainingReport::TrainingReport(BoundRank* rank, RunRecords* records)
    : rank_(*rank),
      plan_(rank->plan()),
      records_(*records),
      clock_limits_(rank->device().pci_address()),
      peak_flops_(PeakFlopsOf(plan_, records->machine())) {
  if (peak_flops_ > 0) {
    flops_ = StepFlopsOf(plan_);
  }
}

auto TrainingReport::NoteCompletedSteps() -> void {
  if (rank_.leads()) {
    rank_.control().SetCompletedSteps(rank_.CompletedSteps());
  }
}

auto TrainingReport::Begin(const BegunRun& begun) -> Status {
  if (!rank_.leads()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto sources, SourcesText(rank_.tokens(), plan_.run.steps));
  rank_.Say(sources);
  RETURN_IF_ERROR(records_.Begin(begun));
  progress_ = std::make_unique<Progress>(plan_.run.steps, plan_.run.log_every, *rank_.context().log);
  return Success{};
}

auto TrainingReport::Time() const -> LineTime {
  const auto elapsed = std::chrono::steady_clock::now() - rank_.context().options.begun;
  return {.utc = UtcNow(), .elapsed_s = std::chrono::duration<double>(elapsed).count()};
}

auto TrainingReport::TimeOfDue(Seconds step) -> Seconds {
  // Forward alone, of three products in a step's one. The first evaluation tells.
  constexpr double ForwardOfStep = 1.0 / 3;
  const double steps_of_samples =
      static_cast<double>(rank_.tokens().num_eval_samples()) / static_cast<double>(SamplesPerStep(plan_));
  const Seconds eval = eval_time_.value_or(Seconds{ForwardOfStep * step.value * steps_of_samples});
  const int64_t now = rank_.CompletedSteps();
  return Seconds{static_cast<double>(NumFires(plan_, SectionKind::Eval, now)) * eval.value +
                 static_cast<double>(NumFires(plan_, SectionKind::Save, now)) * save_time_.value_or(Seconds{}).value};
}

auto TrainingReport::Step(double seconds, std::string_view skipped) -> Status {
  if (!rank_.leads()) {
    return Success{};
  }
  NoteCompletedSteps();
  const auto utilisation = [&](Flops flops) {
    return peak_flops_ > 0 ? std::optional(static_cast<double>(flops.value) / (seconds * peak_flops_)) : std::nullopt;
  };
  const bool varies = plan_.FindScalar(ScalarRole::Targets).valid();
  const StepMetrics metrics{
      .step = rank_.CompletedSteps(),
      .loss = rank_.LossOf(ScalarRole::Loss, ScalarRole::TermLoss),
      .grad_norm = rank_.Scalar(ScalarRole::GradNorm),
      .lr = rank_.Scalar(ScalarRole::Lr),
      .step_ms = seconds * 1e3,
      .tokens_per_s = static_cast<double>(plan_.run.tokens_per_step) / seconds,
      .tokens = rank_.CompletedSteps() * plan_.run.tokens_per_step,
      .targets = varies ? std::optional<int64_t>(std::llround(rank_.Scalar(ScalarRole::Targets))) : std::nullopt,
      .time = Time(),
      .resident_bytes = MeasureResident().value,
      .arena_bytes = ReservedBytes(plan_).value,
      .mfu = utilisation(flops_.model),
      .hfu = utilisation(flops_.model + flops_.recompute),
      .skipped = std::string(skipped),
      .terms = rank_.TermsOf(ScalarRole::TermLoss)};
  progress_->Step(metrics, TimeOfDue(Seconds{seconds}));
  WarnOfNoTarget(metrics.loss, skipped);
  return records_.WriteStep(metrics);
}

auto TrainingReport::WarnOfNoTarget(double loss, std::string_view skipped) -> void {
  // If the loss is NaN for another reason, the gradient is not finite, and the step is skipped.
  if (has_warned_of_no_target_ || !std::isnan(loss) || !skipped.empty()) {
    return;
  }
  has_warned_of_no_target_ = true;
  Note(fmt::format(
      "warning: step {}: no position of the batch has a target, so the step has no loss and its gradient is "
      "0; the optimizer makes its update all the same (this warning comes once)",
      rank_.CompletedSteps()));
}

auto TrainingReport::Evaluating(int64_t passes, int64_t all_passes) -> void {
  if (is_open()) {
    const int64_t all = rank_.tokens().num_eval_samples();
    progress_->Evaluating(all * passes / all_passes, all);
  }
}

auto TrainingReport::Eval(Seconds took) -> Status {
  if (!is_open()) {
    return Success{};
  }
  eval_time_ = took;
  ASSIGN_OR_RETURN(const auto loss, rank_.EvalLoss());
  progress_->Eval(rank_.CompletedSteps(), loss);
  return records_.WriteEval(rank_.CompletedSteps(), loss.value_or(std::nan("")),
                            rank_.TermsOf(ScalarRole::TermEvalLoss), Time());
}

auto TrainingReport::Save(const CheckpointWriter& writer, Seconds took) -> Status {
  if (!is_open()) {
    return Success{};
  }
  save_time_ = took;
  for (const std::string& warning : writer.warnings()) {
    Note("warning: " + warning);
  }
  RETURN_IF_ERROR(records_.PutSave(rank_.CompletedSteps(), writer.last_path()));
  Note(fmt::format("step {}: saved {}", rank_.CompletedSteps(), writer.last_path()));
  return Success{};
}

auto TrainingReport::LookAtDevice(int64_t num_steps) -> Status {
  if (num_steps == 1) {
    RETURN_IF_ERROR(TellMemory());
  }
  if (rank_.CompletedSteps() % std::max<int64_t>(1, plan_.run.log_every) == 0) {
    TellClockLimits();
  }
  if (rank_.CompletedSteps() == 2) {
    memory_after_two_ = rank_.device().MeasureMemory();
  }
  return Success{};
}

auto TrainingReport::TellMemory() -> Status {
  const auto use = rank_.leads() ? MeasureDevice(plan_, rank_.device(), records_.machine()) : std::nullopt;
  if (!use) {
    return Success{};
  }
  Note(DeviceUseText(*use));
  return records_.PutMemory(*use);
}

auto TrainingReport::TellClockLimits() -> void {
  for (const auto& [is_warning, text] : clock_limits_.Look()) {
    const std::string line =
        fmt::format("{}the GPU of rank {} {}", is_warning ? "warning: " : "", rank_.context().rank, text);
    if (rank_.leads()) {
      Note(line);
    } else if (is_warning) {
      rank_.Say(line + "\n");
    }
  }
}

auto TrainingReport::End() -> Status {
  ASSIGN_OR_RETURN(const auto sent,
                   CompareTraffic(*rank_.context().comm, rank_.control(), PlannedTraffic(plan_, rank_.runs())));
  ASSIGN_OR_RETURN(const auto memory, GatherMemory(rank_.control(), rank_.device()));
  if (rank_.leads()) {
    ASSIGN_OR_RETURN(const auto own,
                     MemoryText(rank_.context().rank, rank_.device(), memory_after_two_, rank_.guard()));
    progress_->Finish();
    rank_.Say(own);
    rank_.Say(sent);
    rank_.Say(rank_.guard() == nullptr ? JobMemoryText(plan_, memory, rank_.context().launcher) : "");
  }
  // The launcher's memory and that of each rank are one sum as long as all of them live.
  return rank_.control().Barrier(AxisSet::All());
}

}  // namespace shardc
