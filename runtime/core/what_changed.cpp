#include "runtime/core/what_changed.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/base/text/joined.h"
#include "compiler/expr/step_evaluator.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Takes out what cannot have changed, the model, the optimizer and the samples of a step: other values of these are
/// errors, other spellings change nothing, and a restart is one of the same run.
static auto TakeOutWhatStays(PlanKeys& keys) -> void {
  keys.model = {};
  keys.optimizer.name.reset();
  keys.batch.global.reset();
  keys.start.run_id.reset();
}

/// Returns true for keys that a run reads only when it begins.
static auto HasNoEffect(const std::string& key) -> bool {
  return key.starts_with("init.") || key == OriginKey("start.first").text();
}

/// Returns the learning rate by step.
static auto ScheduleOf(const PlanKeys& keys, int64_t first_step) -> std::optional<StepEvaluator> {
  constexpr size_t MaxLength = 10'000;
  if (!keys.optimizer.lr || keys.optimizer.lr->text.size() > MaxLength || !keys.train.steps) {
    return std::nullopt;
  }
  auto parsed = ParseExpr(keys.optimizer.lr->text, ExprKind::Schedule);
  return parsed.ok() ? std::optional(StepEvaluator(std::move(parsed.value), {*keys.train.steps, first_step}))
                     : std::nullopt;
}

/// Returns "lr of step 21 is 1.18e-4, was 1.06e-4", for the first remaining step whose rate changed. Empty if all rates
/// are the same, or cannot be compared. A step that the run did not have before is compared only if it is the next one.
static auto RateChange(const PlanKeys& before, const PlanKeys& now, int64_t completed, int64_t first_step)
    -> std::string {
  // A second's worth. Beyond it, a schedule that is the same so far is taken for the same.
  constexpr int64_t MostSteps = 1'000'000;
  auto was = ScheduleOf(before, first_step);
  auto is = ScheduleOf(now, first_step);
  if (!was || !is) {
    return {};
  }
  const int64_t common = std::min(*now.train.steps, std::max(*before.train.steps, completed + 1));
  for (int64_t step = completed; step < std::min(common, completed + MostSteps); ++step) {
    const auto rate_was = was->At(step);
    const auto rate_is = is->At(step);
    if (!rate_was.ok() || !rate_is.ok()) {
      return {};
    }
    if (rate_was.value != rate_is.value) {
      return fmt::format("lr of step {} is {:.4g}, was {:.4g}", step + 1, rate_is.value, rate_was.value);
    }
  }
  return {};
}

auto WhatChanged(const std::map<std::string, std::string>& before, const Plan& plan, int64_t step) -> std::string {
  constexpr size_t MostFacts = 20;
  constexpr size_t LongestLine = 160;
  if (plan.recipe.empty()) {
    return {};
  }
  if (before.empty()) {
    return fmt::format(
        "the checkpoint of step {} does not hold the recipe that made it: what was changed since, beside model and "
        "data, "
        "cannot be told",
        step);
  }
  KeysRead was = ReadKeys(before);
  PlanKeys is = KeysOf(plan);
  const std::string rate = RateChange(was.keys, is, step, plan.run.first_step);
  TakeOutWhatStays(was.keys);
  TakeOutWhatStays(is);
  std::vector<KeyDifference> changes = DifferencesOf(was.keys, is);
  // A checkpoint of another version may have keys, and values of keys, that are not known here.
  for (const KeyFault& fault : was.faults) {
    const auto change = std::ranges::find(changes, fault.key, &KeyDifference::key);
    if (change != changes.end()) {
      change->a = before.at(fault.key);
    } else {
      changes.push_back({fault.key, before.at(fault.key), ""});
    }
  }
  const bool has_lr =
      std::ranges::find(changes, OriginKey("optimizer.lr").text(), &KeyDifference::key) != changes.end();
  const bool leaves_to_base = std::ranges::any_of(plan.parameters, &Parameter::in_base);
  std::vector<std::string> facts;
  for (const KeyDifference& change : changes) {
    std::string fact = ToText(change);
    if (HasNoEffect(change.key)) {
      fact += change.key == OriginKey("start.first").text() && leaves_to_base ? " says where the base is"
                                                                              : " has no effect any more";
    } else if (change.key == OriginKey("optimizer.lr").text() && !rate.empty()) {
      fact += ": " + rate;
    } else if (change.key == OriginKey("train.steps").text() && !rate.empty() && !has_lr) {
      fact += " changes the schedule: " + rate;
    }
    facts.push_back(std::move(fact));
  }
  if (facts.empty()) {
    return {};
  }
  const std::string line = fmt::format("changed since step {}: {}", step, Listed(facts, MostFacts, "; ", "; and "));
  return line.size() <= LongestLine
             ? line
             : fmt::format("changed since step {}:\n  {}", step, Listed(facts, MostFacts, "\n  ", "\n  and "));
}

}  // namespace shardc
