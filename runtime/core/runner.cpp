#include "runtime/core/runner.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/base/stopwatch.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "compiler/plan/text.h"
#include "runtime/control/agree.h"
#include "runtime/control/agree_on_plan.h"
#include "runtime/control/agree_on_versions.h"
#include "runtime/core/check_state.h"
#include "runtime/core/compare_replicas.h"
#include "runtime/core/compute_threads.h"
#include "runtime/core/exceptions.h"
#include "runtime/core/trained_on.h"
#include "runtime/core/tune_products.h"
#include "runtime/device/family.h"

namespace shardc {

static auto CheckpointDirOf(const Plan& plan, const std::string& run_dir) -> std::string {
  return plan.run.checkpoint_dir.empty() ? run_dir + "/checkpoints" : plan.run.checkpoint_dir;
}

RankRunner::RankRunner(RankContext& context)
    : context_(context),
      plan_(*context.plan),
      execution_(context.execution),
      scalars_(static_cast<size_t>(context.plan->scalars.size())),
      binder_(&plan_, context.rank, context.device, &services_),
      checkpoint_dir_(CheckpointDirOf(*context.plan, context.options.run_dir)),
      divergence_(binder_, execution_),
      clock_limits_(context.device->pci_address()),
      records_(&context, checkpoint_dir_) {
  services_.communicator = context.comm;
  services_.control = context.control;
  services_.scalars = &scalars_;
  for (int32_t i = 0; i < plan_.parameters.size(); ++i) {
    drawn_.Add({});
  }
  services_.drawn = &drawn_;
  services_.runs = &runs_;
  const MachineRow* const machine = records_.machine();
  peak_flops_ = plan_.run.peak_flops > 0 ? plan_.run.peak_flops : machine == nullptr ? 0 : machine->peak_bf16.value;
  if (peak_flops_ > 0) {
    flops_ = StepFlopsOf(plan_);
  }
  if (context.options.generate) {
    logits_ = std::make_unique<LogitsWatch>(&binder_);
    execution_.wrap = [watch = logits_.get(), inner = execution_.wrap](SectionKind section, size_t index,
                                                                       Kernel kernel) -> Kernel {
      return watch->Wrap(section, index, inner ? inner(section, index, std::move(kernel)) : std::move(kernel));
    };
  }
  if (!context.options.trace.empty()) {
    trace_ = std::make_unique<Trace>(&plan_, context.control, context.device,
                                     TraceRequest{.path = context.options.trace,
                                                  .steps = context.options.trace_steps,
                                                  .most_events = context.options.most_trace_events});
    execution_.wrap = [trace = trace_.get(), inner = execution_.wrap](SectionKind section, size_t index,
                                                                      Kernel kernel) -> Kernel {
      return trace->Wrap(section, index, inner ? inner(section, index, std::move(kernel)) : std::move(kernel));
    };
  }
}

auto RankRunner::Create(RankContext& context) -> ErrorOr<std::unique_ptr<RankRunner>> {
  const Stopwatch watch;
  std::unique_ptr<RankRunner> runner(new RankRunner(context));
  const Plan& plan = *context.plan;
  SetComputeThreads(UsableThreadsOf(plan, NumComputeThreads(plan)).all);

  const auto note = [&](const std::string& line) {
    if (!line.empty() && runner->leads()) {
      runner->Say(line + "\n");
    }
  };
  RETURN_IF_ERROR(AgreeOnPlan(*context.control, plan));
  if (const auto& versions = runner->records_.versions(); !versions.empty()) {
    const auto machines = AgreeOnVersions(*context.control, versions);
    if (!machines) {
      return machines.error();
    }
    note(machines->empty() ? ""
                           : fmt::format("warning: {}; the run continues, and its last bits depend on which rank is "
                                         "where",
                                         *machines));
  }
  note(runner->records_.ReadAlgorithms());
  if (context.options.tune.is_set()) {
    // Before the guard fills memory.
    auto tuned = TuneProducts(context, runner->binder_, runner->records_.products());
    if (!tuned) {
      return tuned.error();
    }
    runner->records_.TakeProducts(*std::move(tuned));
  }
  if (plan.run.guard) {
    auto guard = Guard::Create(plan, *context.device);
    if (!guard) {
      return guard.error();
    }
    runner->guard_ = *std::move(guard);
    runner->execution_.guard = runner->guard_.get();
  }
  auto tokens = TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.steps});
  if (!tokens) {
    return tokens.error();
  }
  runner->tokens_ = *std::move(tokens);
  runner->services_.tokens = runner->tokens_.get();
  runner->writer_ = std::make_unique<CheckpointWriter>(
      CheckpointWriterOptions{.plan = &plan,
                              .control = context.control,
                              .plan_hash = PlanHash(plan),
                              .checkpoint_dir = runner->checkpoint_dir_,
                              .data_fingerprint = runner->tokens_->Fingerprint(),
                              .source_fingerprints = runner->tokens_->SourceFingerprints(),
                              .data_digests = context.data_digests});
  runner->services_.writer = runner->writer_.get();

  for (const ScalarId id : plan.scalars.ids()) {
    if (plan.scalars[id].kind == ScalarKind::Schedule) {
      auto parsed = ParseExpr(plan.scalars[id].expression, ExprKind::Schedule);
      if (!parsed.ok()) {
        return Fail(ExitCode::RecipeRejected, "schedule {}: {}", plan.scalars[id].name, parsed.errors.front().message);
      }
      runner->schedules_.emplace_back(id, StepEvaluator(std::move(parsed.value), plan.run.steps));
    }
  }
  if (context.options.graphs) {
    const bool is_by_op = plan.run.guard || plan.run.device_checks || runner->trace_ != nullptr;
    note(is_by_op ? "warning: --graphs: kernels launch one by one, as ops are waited for or traced" : "");
    const auto make = PartsOf(FactsOf(plan.device).family).make_launch_graphs;
    CHECK(make != nullptr, "graphs of a device that has none");
    runner->graphs_ = is_by_op ? nullptr : make(*context.device);
    runner->execution_.graphs = runner->graphs_.get();
  }
  runner->services_.algorithms = runner->records_.algorithms();
  for (int i = 0; i < NumSections; ++i) {
    const auto section = static_cast<SectionKind>(i);
    if (section != SectionKind::Restore) {
      runner->programs_[static_cast<size_t>(i)].emplace(section, runner->binder_, runner->execution_);
    }
  }
  if (!context.options.tune.file.empty()) {
    RETURN_IF_ERROR(AgreeOnStatus(*context.control, runner->records_.CheckTuned()));
  }
  note(runner->records_.RefusedAlgorithms());
  runner->bind_seconds_ = watch.Elapsed().value;
  return runner;
}

RankRunner::~RankRunner() {
  if (context_.device->is_lost()) {
    // Kernels hold what libraries have on the device.
    static_cast<void>(new auto(std::move(programs_)));
  }
}

auto RankRunner::Say(std::string_view lines) const -> void {
  const RunLog only_stderr;
  (context_.log == nullptr ? only_stderr : *context_.log).Print(lines);
}

auto RankRunner::CompletedSteps() const -> int64_t {
  return static_cast<int64_t>(scalars_[plan_.ScalarOf(ScalarRole::Step)]);
}

auto RankRunner::RunSection(SectionKind section) -> Status {
  std::optional<Program>& program = programs_[static_cast<size_t>(section)];
  CHECK(program.has_value(), "section {} is not bound", ToText(section));
  return program->Run(CompletedSteps());
}

auto RankRunner::GoOnAfter(const Error& save_failure) -> Status {
  constexpr int64_t MostInARow = 3;
  // Another code means that the state, the ranks or the plan are at fault.
  if (plan_.run.on_failure == OnSaveFailure::Stop || save_failure.code != ExitCode::Environment) {
    return save_failure;
  }
  if (++failed_saves_ == MostInARow) {
    return Fail(save_failure.code, "{}; {} saves in a row have failed", save_failure.message, MostInARow);
  }
  if (leads()) {
    progress_->Note(
        fmt::format("warning: {}; the run goes on, as `checkpoint.on_failure` is \"continue\"", save_failure.message));
  }
  // The end of the run, or a stop, saves this step again.
  ran_at_step_.erase(SectionKind::Save);
  return Success{};
}

auto RankRunner::RunOnce(const Trigger& trigger) -> Status {
  const SectionKind section = trigger.section;
  if (!ran_at_step_.insert(section).second) {
    return Success{};
  }
  if (section == SectionKind::Save && leads() && progress_) {
    RETURN_IF_ERROR(records_.CheckOwned());
  }
  if (section == SectionKind::Save && plan_.run.compare_every > 0) {
    RETURN_IF_ERROR(CompareCopies());
  }
  const Stopwatch watch;
  if (const Status ran = RunSection(section); !ran) {
    const Error failure = divergence_.OfSave(ran.error(), NewestCheckpoint());
    const bool is_on_the_way = section == SectionKind::Save && trigger.kind == TriggerKind::EverySteps;
    return is_on_the_way ? GoOnAfter(failure) : Status(failure);
  }
  if (section == SectionKind::Save) {
    failed_saves_ = 0;
    time_limit_.NoteSave(watch.Elapsed());
  }
  if (section == SectionKind::Eval && leads()) {
    if (progress_) {
      const auto loss = EvalLoss();
      if (!loss) {
        return loss.error();
      }
      progress_->Eval(CompletedSteps(), *loss);
      RETURN_IF_ERROR(records_.WriteEval(CompletedSteps(), loss->value_or(std::nan("")),
                                         TermsOf(ScalarRole::TermEvalLoss), Time()));
    }
  }
  if (section == SectionKind::Save && leads() && progress_) {
    for (const std::string& warning : writer_->warnings()) {
      progress_->Note("warning: " + warning);
    }
    RETURN_IF_ERROR(records_.PutSave(CompletedSteps(), writer_->last_path()));
    progress_->Note(fmt::format("step {}: saved {}", CompletedSteps(), writer_->last_path()));
  }
  return Success{};
}

auto RankRunner::CompareCopies() -> Status {
  if (compared_at_ == CompletedSteps()) {
    return Success{};
  }
  compared_at_ = CompletedSteps();
  const Status compared = CompareReplicas(binder_, StateRoles);
  if (compared || compared.error().code != ExitCode::InternalFault) {
    return compared;
  }
  const std::string& newest = NewestCheckpoint();
  return Fail(ExitCode::InternalFault, "after step {}: {}; nothing is saved of it, and the run continues from {}",
              CompletedSteps(), compared.error().message,
              newest.empty() ? "its beginning, as it has no checkpoint" : newest);
}

auto RankRunner::Fire(TriggerKind kind) -> Status {
  for (const Trigger& trigger : plan_.triggers) {
    if (trigger.kind == kind) {
      RETURN_IF_ERROR(RunOnce(trigger));
    }
  }
  return Success{};
}

auto RankRunner::FireEvery() -> Status {
  for (const Trigger& trigger : plan_.triggers) {
    if (trigger.kind == TriggerKind::EverySteps && CompletedSteps() % trigger.every == 0) {
      RETURN_IF_ERROR(RunOnce(trigger));
    }
  }
  return Success{};
}

auto RankRunner::Step() -> ErrorOr<std::optional<ExitCode>> {
  ran_at_step_.clear();
  for (auto& [id, schedule] : schedules_) {
    const auto value = schedule.At(CompletedSteps());
    if (!value.ok()) {
      return Fail(ExitCode::RecipeRejected, "schedule {} at step {}: {}", plan_.scalars[id].name, CompletedSteps(),
                  value.errors.front().message);
    }
    scalars_[id] = value.value;
  }
  time_is_near_ = leads() && time_limit_.IsNear();
  if (context_.control->StopIsRequested() || time_is_near_) {
    scalars_.RequestStop();
  }
  // The step counter moves within: both sections belong to the step that begins here.
  for (const Trigger& trigger : plan_.triggers) {
    if (trigger.kind != TriggerKind::EachStep) {
      continue;
    }
    RETURN_IF_ERROR(RunSection(trigger.section));
    if (trigger.section == SectionKind::Data && after_data) {
      after_data();
    }
  }
  for (const Halt& halt : plan_.halts) {
    if (scalars_[halt.scalar] > static_cast<double>(halt.above)) {
      return std::optional<ExitCode>(halt.code);
    }
  }
  return std::optional<ExitCode>();
}

auto RankRunner::NewestCheckpoint() const -> const std::string& {
  return writer_->last_path().empty() ? restored_from_ : writer_->last_path();
}

auto RankRunner::TermsOf(ScalarRole role) const -> std::vector<HeadLoss> {
  std::vector<HeadLoss> terms;
  for (const ScalarId id : plan_.scalars.ids()) {
    if (plan_.scalars[id].role == role) {
      terms.push_back({plan_.scalars[id].name, scalars_[id]});
    }
  }
  return terms;
}

auto RankRunner::LossOf(ScalarRole whole, ScalarRole term) const -> double {
  const std::vector<HeadLoss> terms = TermsOf(term);
  const bool has_none =
      !terms.empty() && std::ranges::all_of(terms, [](const HeadLoss& loss) { return std::isnan(loss.value); });
  return has_none ? std::nan("") : scalars_[plan_.ScalarOf(whole)];
}

auto RankRunner::EvalLoss() -> ErrorOr<std::optional<double>> {
  const double loss = LossOf(ScalarRole::EvalLoss, ScalarRole::TermEvalLoss);
  if (!std::isnan(loss)) {
    return std::optional(loss);
  }
  const auto has_targets = tokens_->HoldsEvalTarget();
  if (!has_targets) {
    return has_targets.error();
  }
  return *has_targets ? std::optional(loss) : std::nullopt;
}

auto RankRunner::LoadParameters(const std::string& checkpoint) -> Status {
  RETURN_IF_ERROR(Fire(TriggerKind::Load));
  RETURN_IF_ERROR(OpenCheckpoint(checkpoint, ReadPurpose::Parameters));
  RETURN_IF_ERROR(RunSection(SectionKind::Restore));
  RETURN_IF_ERROR(CheckLoadedState(binder_, std::array{StateRole::Parameter}, checkpoint));
  return CompareReplicas(binder_, std::array{StateRole::Parameter});
}

auto RankRunner::Evaluate(const std::string& checkpoint) -> ErrorOr<double> {
  if (plan_.section(SectionKind::Eval).ops.empty()) {
    return Fail(ExitCode::Usage,
                "nothing is held out to evaluate on: data.eval_tokens is {}, and data.eval names no files",
                plan_.data.eval_tokens);
  }
  RETURN_IF_ERROR(LoadParameters(checkpoint));
  if (const std::string note = TrainedOnText(reader_->manifest().data, plan_, *tokens_); leads() && !note.empty()) {
    Say(note + "\n");
  }
  RETURN_IF_ERROR(RunSection(SectionKind::Eval));
  const auto loss = EvalLoss();
  if (!loss) {
    return loss.error();
  }
  if (!*loss) {
    return Fail(ExitCode::RecipeRejected,
                "no position of the held-out samples has a target, so there is nothing to evaluate; hold out others: "
                "--set data.eval_tokens=N");
  }
  return **loss;
}

static auto RunBound(RankContext& context) -> ErrorOr<ExitCode> {
  auto runner = RankRunner::Create(context);
  if (!runner) {
    return runner.error();
  }
  if (context.options.dry) {
    return ExitCode::Ok;
  }
  if (context.options.eval_checkpoint.empty()) {
    return (*runner)->Train();
  }
  if (context.options.generate) {
    RETURN_IF_ERROR((*runner)->Generate(context.options.eval_checkpoint));
    return ExitCode::Ok;
  }
  const auto loss = (*runner)->Evaluate(context.options.eval_checkpoint);
  if (!loss) {
    return loss.error();
  }
  if (context.rank == 0) {
    const ScalarId step = context.plan->ScalarOf(ScalarRole::Step);
    const auto completed = static_cast<int64_t>((*runner)->scalars()[step]);
    const std::string result = context.options.json
                                   ? EvalLine(completed, *loss) + "\n"
                                   : fmt::format("step {}: eval loss {} nats/token\n", completed, LossText(*loss));
    if (std::fwrite(result.data(), 1, result.size(), stdout) != result.size() || std::fflush(stdout) != 0) {
      const int code = errno;
      return Fail(ExitCode::Environment, "cannot write the result to stdout: {}", std::strerror(code));
    }
  }
  return ExitCode::Ok;
}

auto RunRank(RankContext& context) -> ErrorOr<ExitCode> {
  // Those of ops have been caught by now, with the op; these are of what is done between them.
  return CatchExceptions([&] { return RunBound(context); });
}

}  // namespace shardc
