#include "compiler/driver/fit.h"

#include <algorithm>

namespace shardc {

/// The first fault, on one line.
static auto WhyRefused(const RecipeSource& source, const Error& error) -> std::string {
  const auto& all = source.diagnostics().all();
  const auto fault =
      std::ranges::find_if(all, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::Error; });
  const std::string text = fault == all.end() ? error.message : fault->text;
  return text.substr(0, text.find('\n'));
}

static auto RowOf(Knob knob, const RecipeOptions& recipe, const std::string& text) -> KnobRow {
  if (!knob.refused.empty()) {
    return {.knob = std::move(knob)};
  }
  RecipeOptions changed = recipe;
  changed.sets.insert(changed.sets.end(), knob.sets.begin(), knob.sets.end());
  RecipeSource source(changed, text);
  const auto plan = source.LoadAndCompile({});
  if (!plan) {
    knob.refused = WhyRefused(source, plan.error());
    return {.knob = std::move(knob)};
  }
  return {.knob = std::move(knob), .figures = FiguresOf(*plan)};
}

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse {
  FitUse fit{.budget = budget, .now = FiguresOf(plan)};
  for (Knob& knob : KnobsOf(plan)) {
    fit.knobs.push_back(RowOf(std::move(knob), recipe, text));
  }
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse {
  return {.budget = budget, .now = FiguresOf(plan), .has_recipe = false};
}

}  // namespace shardc
