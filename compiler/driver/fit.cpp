#include "compiler/driver/fit.h"

#include <algorithm>

#include "compiler/plan/text.h"

namespace shardc {

/// The first fault, on one line.
static auto WhyRefused(const RecipeSource& source, const Error& error) -> std::string {
  const auto& all = source.diagnostics().all();
  const auto fault =
      std::ranges::find_if(all, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::Error; });
  const std::string text = fault == all.end() ? error.message : fault->text;
  return text.substr(0, text.find('\n'));
}

/// `plan` is that of the recipe as it is, and has the figures `now`.
static auto RowOf(Knob knob, const Plan& plan, const PlanFigures& now, const RecipeOptions& recipe,
                  const std::string& text) -> KnobRow {
  if (!knob.refused.empty()) {
    return {.knob = std::move(knob)};
  }
  RecipeOptions changed = recipe;
  changed.sets.insert(changed.sets.end(), knob.sets.begin(), knob.sets.end());
  RecipeSource source(changed, text, LeftOut::Assume);
  const auto other = source.LoadAndCompile({});
  if (!other) {
    knob.refused = WhyRefused(source, other.error());
    return {.knob = std::move(knob)};
  }
  const PlanFigures figures = FiguresOf(*other);
  // Only plans whose figures agree can be one plan.
  if (figures == now && PlanHash(*other) == PlanHash(plan)) {
    knob.refused = "it makes the same plan";
    return {.knob = std::move(knob)};
  }
  return {.knob = std::move(knob), .figures = figures};
}

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse {
  FitUse fit{.budget = budget, .now = FiguresOf(plan)};
  for (Knob& knob : KnobsOf(plan)) {
    fit.knobs.push_back(RowOf(std::move(knob), plan, fit.now, recipe, text));
  }
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse {
  return {.budget = budget, .now = FiguresOf(plan), .has_recipe = false};
}

}  // namespace shardc
