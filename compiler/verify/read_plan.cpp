#include "compiler/verify/read_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/plan/line_reader.h"
#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"

namespace shardc {

static constexpr const char* MakeItAgain = "make the plan again from its recipe: shardc plan RECIPE -o FILE";

/// Returns the value of a field of the first line after empty lines and comments, if that line begins with `plan`.
static auto FieldOfPlanLine(std::string_view text, std::string_view key) -> std::optional<std::string> {
  // The parser says what is wrong with the mark.
  constexpr std::string_view ByteOrderMark = "\xef\xbb\xbf";
  text.remove_prefix(text.starts_with(ByteOrderMark) ? ByteOrderMark.size() : 0);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    LineReader words(line);
    if (!words.AtEnd()) {
      auto word = words.TakeWord();
      if (!word || word->text != "plan") {
        return std::nullopt;
      }
      while (word && word->key() != key) {
        word = words.AtEnd() ? std::nullopt : words.TakeWord();
      }
      return word ? std::optional(std::string(word->value())) : std::nullopt;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

auto IsPlanText(std::string_view text) -> bool { return FieldOfPlanLine(text, "version").has_value(); }

auto DeviceOfPlanText(std::string_view text) -> Device {
  return FromText<Device>(FieldOfPlanLine(text, "device").value_or("")).value_or(Device::Cpu);
}

/// Reads a plan without verifying it. The first fault ends the reading.
static auto ReadPlan(const std::string& path, std::string_view text) -> ErrorOr<Plan> {
  FAIL_IF(text.size() > MaxPlanBytes, ExitCode::RecipeRejected, "{} has more than {} bytes, which no plan has\n{}",
          path, MaxPlanBytes, MakeItAgain);
  auto plan = ParsePlan(text);
  FAIL_IF(!plan, plan.error().code, "{}:{}\n{}", path, plan.error().message, MakeItAgain);
  FAIL_IF(!plan->disabled.empty(), ExitCode::RecipeRejected,
          "{} was made with the pass {} disabled; it is for reading, not for running", path, ToText(plan->disabled[0]));
  return plan;
}

auto CheckAssumesNothing(const std::string& path, const Plan& plan) -> Status {
  std::vector<std::string> keys;
  for (const RecipeEntry& entry : plan.recipe) {
    if (entry.is_assumed) {
      keys.push_back(entry.key);
    }
  }
  if (keys.empty()) {
    return Success{};
  }
  return Fail(
      ExitCode::RecipeRejected,
      "{} was made from a recipe without {}: it has assumed values for planning, and is not for running\nset {} "
      "in the recipe, and make the plan again",
      path, fmt::join(keys, ", "), keys.size() == 1 ? "this key" : "these keys");
}

auto ReadRunnablePlan(const std::string& path, std::string_view text, std::vector<std::string>* faults)
    -> ErrorOr<Plan> {
  auto plan = ReadPlan(path, text);
  if (!plan) {
    if (faults != nullptr) {
      faults->push_back(plan.error().message);
    }
    return plan;
  }
  auto findings = VerifyRunnable(*plan);
  if (findings.empty()) {
    return plan;
  }
  constexpr std::ptrdiff_t MaxShown = 10;
  const auto end = findings.begin() + std::min(MaxShown, std::ssize(findings));
  const Error refused =
      Fail(ExitCode::RecipeRejected, "{} does not verify, {} finding{}:\n  {}\n{}", path, findings.size(),
           findings.size() == 1 ? "" : "s", fmt::join(findings.begin(), end, "\n  "), MakeItAgain);
  if (faults != nullptr) {
    *faults = std::move(findings);
  }
  return refused;
}

}  // namespace shardc
