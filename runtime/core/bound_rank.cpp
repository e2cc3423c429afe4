#include "runtime/core/bound_rank.h"

#include <algorithm>
#include <cmath>

#include "compiler/base/text/numbers_and_lines.h"
#include "runtime/device/family.h"

namespace shardc {

/// Returns what calls `watch` round each kernel, and `inner` inside of that if it is set.
template <class Watch>
static auto WrapIn(Watch* watch, std::function<Kernel(SectionKind, size_t, Kernel)> inner)
    -> std::function<Kernel(SectionKind, size_t, Kernel)> {
  return [watch, inner = std::move(inner)](SectionKind section, size_t index, Kernel kernel) -> Kernel {
    return watch->Wrap(section, index, inner ? inner(section, index, std::move(kernel)) : std::move(kernel));
  };
}

BoundRank::BoundRank(RankContext* context)
    : context_(*context),
      plan_(*context->plan),
      execution_(context->execution),
      scalars_(static_cast<size_t>(context->plan->scalars.size())),
      binder_(&plan_, context->rank, context->device, &services_) {
  services_.communicator = context_.comm;
  services_.control = context_.control;
  services_.scalars = &scalars_;
  for (int32_t i = 0; i < plan_.parameters.size(); ++i) {
    drawn_.Add({});
  }
  services_.drawn = &drawn_;
  services_.runs = &runs_;
  if (context_.options.generate) {
    logits_ = std::make_unique<LogitsWatch>(&binder_);
    execution_.wrap = WrapIn(logits_.get(), std::move(execution_.wrap));
  }
  if (const LaunchOptions& options = context_.options; !options.trace.empty()) {
    trace_ = std::make_unique<Trace>(
        &plan_, context_.control, context_.device,
        TraceRequest{.path = options.trace, .steps = options.trace_steps, .most_events = options.most_trace_events});
    execution_.wrap = WrapIn(trace_.get(), std::move(execution_.wrap));
  }
}

auto BoundRank::StartGuard() -> Status {
  if (!plan_.run.guard) {
    return Success{};
  }
  ASSIGN_OR_RETURN(guard_, Guard::Create(plan_, *context_.device));
  execution_.guard = guard_.get();
  return Success{};
}

auto BoundRank::OpenTokens() -> Status {
  ASSIGN_OR_RETURN(tokens_,
                   TokenReader::Open(plan_.data, plan_.heads, {SamplesPerStep(plan_), plan_.run.schedule_steps()}));
  services_.tokens = tokens_.get();
  return Success{};
}

auto BoundRank::ReadSchedules() -> Status {
  for (const ScalarId id : plan_.scalars.ids()) {
    if (plan_.scalars[id].kind == ScalarKind::Schedule) {
      auto parsed = ParseExpr(plan_.scalars[id].expression, ExprKind::Schedule);
      FAIL_IF(!parsed.ok(), ExitCode::RecipeRejected, "schedule {}: {}", plan_.scalars[id].name,
              parsed.errors.front().message);
      schedules_.emplace_back(id, StepEvaluator(std::move(parsed.value), plan_.run.schedule_steps()));
    }
  }
  return Success{};
}

auto BoundRank::MakeGraphs() -> std::string_view {
  if (!context_.options.graphs) {
    return "";
  }
  const auto make = PartsOf(FactsOf(plan_.device).family).make_launch_graphs;
  CHECK(make != nullptr, "graphs of a device that has none");
  if (plan_.run.guard || plan_.run.device_checks || trace_ != nullptr) {
    return "warning: --graphs: kernels launch one by one, as ops are waited for or traced";
  }
  graphs_ = make(*context_.device);
  execution_.graphs = graphs_.get();
  return "";
}

auto BoundRank::BindSections(std::map<std::string, std::string>* algorithms) -> void {
  services_.algorithms = algorithms;
  for (int i = 0; i < NumSections; ++i) {
    if (const auto section = static_cast<SectionKind>(i); section != SectionKind::Restore) {
      BindSection(section);
    }
  }
}

auto BoundRank::BindSection(SectionKind section) -> void {
  programs_[static_cast<size_t>(section)].emplace(section, binder_, execution_);
}

auto BoundRank::FreeSections() -> void {
  if (context_.device->is_lost()) {
    static_cast<void>(new auto(std::move(programs_)));
  }
  for (std::optional<Program>& program : programs_) {
    program.reset();
  }
}

auto BoundRank::RunSection(SectionKind section) -> Status {
  std::optional<Program>& program = programs_[static_cast<size_t>(section)];
  CHECK(program.has_value(), "section {} is not bound", ToText(section));
  return program->Run(CompletedSteps());
}

auto BoundRank::SetSchedules() -> Status {
  for (auto& [id, schedule] : schedules_) {
    const auto value = schedule.At(CompletedSteps());
    FAIL_IF(!value.ok(), ExitCode::RecipeRejected, "schedule {} at step {}: {}", plan_.scalars[id].name,
            CompletedSteps(), value.errors.front().message);
    scalars_[id] = value.value;
  }
  return Success{};
}

auto BoundRank::RunStep() -> ErrorOr<std::optional<ExitCode>> {
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

auto BoundRank::TermsOf(ScalarRole role) const -> std::vector<HeadLoss> {
  std::vector<HeadLoss> terms;
  for (const ScalarId id : plan_.scalars.ids()) {
    if (plan_.scalars[id].role == role) {
      terms.push_back({plan_.scalars[id].name, scalars_[id]});
    }
  }
  return terms;
}

auto BoundRank::LossOf(ScalarRole whole, ScalarRole term) const -> double {
  const std::vector<HeadLoss> terms = TermsOf(term);
  const bool has_none =
      !terms.empty() && std::ranges::all_of(terms, [](const HeadLoss& loss) { return std::isnan(loss.value); });
  return has_none ? std::nan("") : Scalar(whole);
}

auto BoundRank::EvalLoss() -> ErrorOr<std::optional<double>> {
  const double loss = LossOf(ScalarRole::EvalLoss, ScalarRole::TermEvalLoss);
  if (!std::isnan(loss)) {
    return std::optional(loss);
  }
  ASSIGN_OR_RETURN(const auto has_targets, tokens_->HoldsEvalTarget());
  return has_targets ? std::optional(loss) : std::nullopt;
}

auto BoundRank::CheckStop(int64_t done, int64_t all, std::string_view noun) -> Status {
  ASSIGN_OR_RETURN(const auto stops, control().GatherValues(AxisSet::All(), control().StopIsRequested() ? 1 : 0));
  FAIL_IF(std::ranges::count(stops, 1) > 0, ExitCode::Preempted, "stopped as asked after {} of {}", Grouped(done),
          Counted(all, noun));
  return Success{};
}

auto BoundRank::Say(std::string_view lines) const -> void {
  const RunLog only_stderr;
  (context_.log == nullptr ? only_stderr : *context_.log).Print(lines);
}

}  // namespace shardc
