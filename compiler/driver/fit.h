// shardc plan --fit: plans the recipe again with each change that could help, in this process.
#pragma once

#include <string>

#include "compiler/driver/recipe_source.h"
#include "compiler/fit/fit_text.h"

namespace shardc {

/// The values of --fit and of the options beside it.
struct FitQuestion {
  MemoryBudget budget;
  bool grows_batch = false;
  std::optional<double> price;
  std::optional<Device> device_of_machine;
};

/// Holds the plan of a recipe against a budget, and plans it again with each change and with combinations of them; with
/// larger microbatches too if they are asked for. Reports each part of the answers as soon as it is known, and progress
/// on stderr.
auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const FitQuestion& question,
                 const FitListener& known = {}) -> FitUse;
/// Holds a plan file against a budget, which cannot change.
auto FitOfPlanFile(const Plan& plan, const FitQuestion& question, const FitListener& known = {}) -> FitUse;

}  // namespace shardc
