// shardc plan --fit: plans the recipe again with each change that could help, in this process.
#pragma once

#include <string>

#include "compiler/driver/recipe_source.h"
#include "compiler/fit/fit.h"

namespace shardc {

/// Holds the plan of a recipe against a budget, and plans it again with each change and with combinations of them; with
/// larger microbatches too if they are asked for.
auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget,
                 bool grows_batch = false) -> FitUse;
/// Holds a plan file against a budget, which cannot change.
auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse;

}  // namespace shardc
