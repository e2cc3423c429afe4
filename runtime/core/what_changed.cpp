#include "runtime/core/what_changed.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "compiler/base/printable.h"
#include "compiler/expr/step_evaluator.h"

namespace shardc {

using Recipe = std::map<std::string, std::string>;

/// Returns true for keys that cannot have changed: those of the model, the optimizer and the samples of a step. Other
/// values are errors, other spellings change nothing, and a restart is one of the same run.
static auto IsTheSameByNow(const std::string& key) -> bool {
  return key.starts_with("model.") || key == "optimizer.name" || key == "batch.global" || key == "start.run_id";
}

/// Returns true for keys that a run reads only when it begins.
static auto HasNoEffect(const std::string& key) -> bool { return key.starts_with("init.") || key == "start.first"; }

static auto ValueOf(const Recipe& recipe, const std::string& key) -> std::string {
  const auto found = recipe.find(key);
  return found == recipe.end() ? "unset" : found->second;
}

/// Returns the text of a TOML string as recipes are resolved, or of a plain number; nothing for other values.
static auto Unquoted(std::string_view value) -> std::optional<std::string> {
  if (!value.starts_with('"')) {
    return std::string(value);
  }
  if (value.size() < 2 || !value.ends_with('"')) {
    return std::nullopt;
  }
  value = value.substr(1, value.size() - 2);
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    // Control characters (\u001F) have no place in a schedule.
    if (value[i] == '\\' && (i + 1 == value.size() || (value[i + 1] != '"' && value[i + 1] != '\\'))) {
      return std::nullopt;
    }
    i += value[i] == '\\' ? 1 : 0;
    text += value[i];
  }
  return text;
}

static auto StepsOf(const Recipe& recipe) -> int64_t {
  const std::string text = ValueOf(recipe, "train.steps");
  int64_t steps = -1;
  std::from_chars(text.data(), text.data() + text.size(), steps);
  return steps;
}

/// Returns the learning rate by step.
static auto ScheduleOf(const Recipe& recipe) -> std::optional<StepEvaluator> {
  constexpr size_t MaxLength = 10'000;
  const auto text = Unquoted(ValueOf(recipe, "optimizer.lr"));
  const int64_t steps = StepsOf(recipe);
  if (!text || text->size() > MaxLength || steps < 0) {
    return std::nullopt;
  }
  auto parsed = ParseExpr(*text, ExprKind::Schedule);
  if (!parsed.ok()) {
    return std::nullopt;
  }
  return StepEvaluator(std::move(parsed.value), steps);
}

/// Returns "lr of step 21 is 1.18e-4, was 1.06e-4", for the first remaining step whose rate changed. Empty if all rates
/// are the same, or cannot be compared. A step that the run did not have before is compared only if it is the next one.
static auto RateChange(const Recipe& before, const Recipe& now, int64_t completed) -> std::string {
  // A second's worth. Beyond it, a schedule that is the same so far is taken for the same.
  constexpr int64_t MostSteps = 1'000'000;
  auto was = ScheduleOf(before);
  auto is = ScheduleOf(now);
  if (!was || !is) {
    return {};
  }
  const int64_t left = StepsOf(now);
  const int64_t common = std::min(left, std::max(StepsOf(before), completed + 1));
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

static auto Difference(const std::string& key, const Recipe& before, const Recipe& now) -> std::string {
  constexpr size_t MostShown = 400;
  const std::string was = PrintableLine(ValueOf(before, key));
  const std::string is = PrintableLine(ValueOf(now, key));
  return was.size() > MostShown || is.size() > MostShown ? fmt::format("another value of {}", PrintableLine(key))
                                                         : fmt::format("{} {} -> {}", PrintableLine(key), was, is);
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
  Recipe now;
  // In the order of the recipe's keys; what is not set any more comes last.
  std::vector<std::string> keys;
  for (const RecipeEntry& entry : plan.recipe) {
    now[entry.key] = entry.value;
    keys.push_back(entry.key);
  }
  for (const auto& [key, value] : before) {
    if (!now.contains(key)) {
      keys.push_back(key);
    }
  }
  std::erase_if(
      keys, [&](const std::string& key) { return IsTheSameByNow(key) || ValueOf(before, key) == ValueOf(now, key); });
  const std::string rate = RateChange(before, now, step);
  const bool has_lr = std::find(keys.begin(), keys.end(), "optimizer.lr") != keys.end();
  std::vector<std::string> facts;
  for (const std::string& key : keys) {
    std::string fact = Difference(key, before, now);
    if (HasNoEffect(key)) {
      fact += " has no effect any more";
    } else if (key == "optimizer.lr" && !rate.empty()) {
      fact += ": " + rate;
    } else if (key == "train.steps" && !rate.empty() && !has_lr) {
      fact += " changes the schedule: " + rate;
    }
    facts.push_back(std::move(fact));
  }
  if (facts.empty()) {
    return {};
  }
  if (facts.size() > MostFacts) {
    const size_t more = facts.size() - MostFacts;
    facts.resize(MostFacts);
    facts.push_back(fmt::format("and {} more", more));
  }
  const std::string line = fmt::format("changed since step {}: {}", step, fmt::join(facts, "; "));
  return line.size() <= LongestLine ? line
                                    : fmt::format("changed since step {}:\n  {}", step, fmt::join(facts, "\n  "));
}

}  // namespace shardc
