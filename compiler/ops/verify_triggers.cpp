// The run as the trigger table tells it: every section with ops begins at its proper time and at no other, and each
// step counts itself, so that the run goes on and ends. Nothing in the runtime makes up for a row that is not there.
#include <algorithm>
#include <array>

#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

/// When a section may begin, and when it begins without fail.
struct Times {
  SectionKind section;
  std::vector<TriggerKind> allowed;
  std::vector<TriggerKind> required;
};

auto TimesOfSections() -> const std::array<Times, NumSections>& {
  using enum TriggerKind;
  static const std::array<Times, NumSections> times{{
      {SectionKind::Constants, {Load}, {Load}},
      {SectionKind::Init, {First}, {First}},
      {SectionKind::Restore, {Restart}, {Restart}},
      {SectionKind::Data, {EachStep}, {EachStep}},
      {SectionKind::Step, {EachStep}, {EachStep}},
      {SectionKind::Eval, {EverySteps, End}, {End}},
      {SectionKind::Save, {EverySteps, End, Stop}, {End, Stop}},
  }};
  return times;
}

auto CheckTable(const Plan& plan, Findings& findings) -> void {
  for (const Times& times : TimesOfSections()) {
    std::array<int, CountOf<TriggerKind>()> counts{};
    for (const Trigger& trigger : plan.triggers) {
      if (trigger.section == times.section) {
        ++counts[static_cast<size_t>(trigger.kind)];
      }
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto kind = static_cast<TriggerKind>(i);
      const auto has = [&](const std::vector<TriggerKind>& kinds) {
        return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
      };
      if (counts[i] > (has(times.allowed) ? 1 : 0)) {
        findings.Add("trigger-extra", "section {} has {} triggers {}", ToText(times.section), counts[i], ToText(kind));
      }
      if (counts[i] == 0 && has(times.required) && !plan.section(times.section).ops.empty()) {
        findings.Add("trigger-missing", "section {} has no trigger {}", ToText(times.section), ToText(kind));
      }
    }
  }
}

/// The step counter goes up by 1 a step whatever happens, an optimizer's counter with its updates.
auto CheckCounters(const Plan& plan, Findings& findings) -> void {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  const auto increments = [&](ScalarId scalar, const Predicate& when) {
    int count = 0;
    int depth = 0;
    for (const Op& op : ops) {
      depth += op.As<op::Repeat>() != nullptr ? 1 : 0;
      depth -= op.As<op::EndRepeat>() != nullptr ? 1 : 0;
      if (const auto* increment = op.As<op::Increment>(); increment != nullptr && increment->scalar == scalar) {
        // One in a loop, or under another predicate, counts as too many.
        count += depth == 0 && op.when == when ? 1 : 2;
      }
    }
    return count;
  };
  ScalarId step;
  for (int32_t i = 0; i < plan.scalars.size(); ++i) {
    step = plan.scalars[ScalarId{i}].name == "step" && plan.scalars[ScalarId{i}].kind == ScalarKind::State ? ScalarId{i}
                                                                                                           : step;
  }
  if (!step.valid() || increments(step, {}) != 1) {
    findings.Add("step-count", "section step does not add 1 to a state scalar named step, once and always");
  }
  ScalarId checked;
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto* adamw = ops[i].As<op::Adamw>();
    if (adamw != nullptr && adamw->updates != checked && increments(adamw->updates, ops[i].when) != 1) {
      findings.AddOp(SectionKind::Step, i, "update-count", "{} is not counted up once where this op runs",
                     plan.scalars[adamw->updates].name);
    }
    checked = adamw != nullptr ? adamw->updates : checked;
  }
}

}  // namespace

auto VerifyTriggers(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Lifecycle)) {
    return;
  }
  CheckTable(plan, findings);
  CheckCounters(plan, findings);
}

}  // namespace shardc
