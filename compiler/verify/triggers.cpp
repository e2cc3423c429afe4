// The run as the trigger table tells it: every section with ops begins at its proper time and at no other, and each
// step counts itself, so that the run continues and ends, or is halted. Nothing in the runtime makes up for a row that
// is missing.
#include <algorithm>
#include <array>

#include "compiler/plan/loops.h"
#include "compiler/verify/internal.h"

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
        findings.Add("trigger-extra"_rule, "section {} has {} triggers {}", ToText(times.section), counts[i],
                     ToText(kind));
      }
      if (counts[i] == 0 && has(times.required) && !plan.section(times.section).ops.empty()) {
        findings.Add("trigger-missing"_rule, "section {} has no trigger {}", ToText(times.section), ToText(kind));
      }
    }
  }
}

/// Asks that triggers of one time are rows in the order in which they begin: the samples of a step are loaded before
/// it, and an evaluation judges the state that is then saved.
auto CheckRows(const Plan& plan, Findings& findings) -> void {
  std::array<const Trigger*, CountOf<TriggerKind>()> last{};
  for (const Trigger& trigger : plan.triggers) {
    const Trigger*& before = last[static_cast<size_t>(trigger.kind)];
    if (before != nullptr && before->section > trigger.section) {
      findings.Add("trigger-order"_rule, "of the triggers {}, that of section {} stands before that of section {}",
                   ToText(trigger.kind), ToText(before->section), ToText(trigger.section));
    }
    before = &trigger;
  }
}

/// An op that adds to a scalar.
struct Addition {
  size_t index;
  ScalarId scalar;
  bool in_loop;
};
auto AdditionsIn(const std::vector<Op>& ops) -> std::vector<Addition> {
  std::vector<Addition> additions;
  LoopTracker loops;
  for (size_t i = 0; i < ops.size(); ++i) {
    loops.Enter(ops[i]);
    for (const ScalarUse& use : ScalarsOf(ops[i])) {
      if (use.effect == ScalarEffect::Add) {
        additions.push_back({i, use.scalar, loops.in_loop()});
      }
    }
  }
  return additions;
}

/// Asks that the step counter goes up by 1 per step whatever happens, and the count of updates with them, after the
/// last of them.
auto CheckCounters(const Plan& plan, Findings& findings) -> void {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  const std::vector<Addition> additions = AdditionsIn(ops);
  const auto increments = [&](ScalarId scalar, const Predicate& when) {
    int count = 0;
    for (const Addition& addition : additions) {
      if (addition.scalar == scalar) {
        // One in a loop, or under another predicate, counts as too many.
        count += !addition.in_loop && ops[addition.index].when == when ? 1 : 2;
      }
    }
    return count;
  };
  const ScalarId step = plan.FindScalar(ScalarRole::Step);
  if (!step.valid() || increments(step, {}) != 1) {
    findings.Add("step-count"_rule, "section step does not add 1 to the scalar of the role step, once and always");
  }
  // Of any optimizer: checkpoints hold the count.
  const ScalarId updates = plan.FindScalar(ScalarRole::Updates);
  bool is_first = true;
  bool is_counted = false;
  auto next = additions.begin();
  for (size_t i = 0; i < ops.size(); ++i) {
    for (; next != additions.end() && next->index <= i; ++next) {
      is_counted = is_counted || next->scalar == updates;
    }
    if (FactsOf(ops[i]).update != UpdatePart::Apply) {
      continue;
    }
    if (is_first && (!updates.valid() || increments(updates, ops[i].when) != 1)) {
      findings.AddOp(SectionKind::Step, i, "update-count"_rule, "no op counts the updates once where this op runs");
    }
    if (is_counted) {
      findings.AddOp(SectionKind::Step, i, "update-count"_rule, "the updates are counted before this one");
    }
    is_first = false;
  }
}

/// Asks that a halt that waits for more than one step reads a flag that counts: up by 1 if another flag, which control
/// writes, is set, and back to 0 if it is not. Both ops come after control, and nothing else writes the flag.
auto CheckHalts(const Plan& plan, Findings& findings) -> void {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  // By scalar: written by control so far, which agrees it.
  std::vector<bool> agreed(static_cast<size_t>(plan.scalars.size()), false);
  struct Count {
    std::vector<Predicate> ups;
    std::vector<Predicate> backs;
  };
  std::vector<Count> counts(agreed.size());
  const auto add = [&](size_t i, ScalarId scalar, bool in_loop, std::vector<Predicate>& list) {
    const Predicate& when = ops[i].when;
    if (agreed[static_cast<size_t>(scalar.index)]) {
      findings.AddOp(SectionKind::Step, i, "flag-overwritten"_rule, "control writes {} too", plan.scalars[scalar].name);
    }
    const bool counts_once = !in_loop && !when.always() && agreed[static_cast<size_t>(when.scalar.index)];
    list.push_back(counts_once ? when : Predicate{});
  };
  LoopTracker loops;
  for (size_t i = 0; i < ops.size(); ++i) {
    loops.Enter(ops[i]);
    for (const ScalarUse& use : ScalarsOf(ops[i])) {
      const auto index = static_cast<size_t>(use.scalar.index);
      if (use.effect == ScalarEffect::SetByAll) {
        agreed[index] = true;
      } else if (use.effect == ScalarEffect::Add && plan.scalars[use.scalar].kind == ScalarKind::Flag) {
        add(i, use.scalar, loops.in_loop(), counts[index].ups);
      } else if (use.effect == ScalarEffect::Reset) {
        add(i, use.scalar, loops.in_loop(), counts[index].backs);
      }
    }
  }
  for (const Halt& halt : plan.halts) {
    if (halt.code != ExitCode::Diverged) {
      findings.Add("halt-code"_rule, "a halt at {} ends the run with exit code {}, expected {}",
                   plan.scalars[halt.scalar].name, static_cast<int>(halt.code), static_cast<int>(ExitCode::Diverged));
    }
    const auto index = static_cast<size_t>(halt.scalar.index);
    const Count& count = counts[index];
    const bool is_count = count.ups.size() == 1 && count.backs.size() == 1 && !count.ups[0].always() &&
                          !count.ups[0].negated && count.backs[0] == Predicate{count.ups[0].scalar, true};
    if (!is_count && (halt.above > 0 || !agreed[index])) {
      findings.Add("halt-count"_rule,
                   "a halt waits for {} above {}, and section step does not count it up once and back to 0 once by a "
                   "flag that control writes",
                   plan.scalars[halt.scalar].name, halt.above);
    }
  }
}

}  // namespace

auto VerifyTriggers(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Lifecycle)) {
    return;
  }
  CheckTable(plan, findings);
  if (findings.empty()) {
    CheckRows(plan, findings);
  }
  CheckCounters(plan, findings);
  CheckHalts(plan, findings);
}

}  // namespace shardc
