// shardc plan --fit: plans the recipe again with each change that could help, in this process.
#pragma once

#include <string>

#include "compiler/driver/recipe_source.h"
#include "compiler/fit/fit.h"
#include "compiler/fit/fit_search.h"

namespace shardc {

/// Plans a recipe with these keys changed, for its figures alone: without the verifier, which takes most of the time of
/// a plan. `text` is that of the recipe, which was accepted.
auto PlanTrial(const RecipeOptions& recipe, const std::string& text, const std::vector<std::string>& sets) -> Trial;

/// Holds the plan of a recipe against a budget, and plans it again with each change and with combinations of them.
auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse;
/// Holds a plan file against a budget, which cannot change.
auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse;

}  // namespace shardc
