// shardc plan --fit: plans the recipe again with each change that could help, in this process.
#pragma once

#include <string>

#include "compiler/driver/recipe_source.h"
#include "compiler/explain/fit.h"

namespace shardc {

/// Holds the plan of a recipe against a budget. `text` is that of the recipe, which is compiled once for each change.
auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse;
/// The same of a plan file, which cannot change.
auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse;

}  // namespace shardc
