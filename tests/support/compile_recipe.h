// From the text of a recipe to its plan, in this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

struct CompiledRecipe {
  Recipe recipe;
  Plan plan;
  /// The warnings, as a user reads them.
  std::string warnings;
};

/// Reads and checks the text of a recipe that the program wrote. One that is rejected ends the test.
auto CheckedRecipe(const std::string& text) -> Recipe;

/// Reads, checks and compiles a recipe with `--set` texts. A recipe or a plan that is rejected ends the test.
auto CompileRecipe(const std::string& path, const std::string& text, const std::vector<std::string>& sets,
                   std::optional<PassKind> stop_after = {}) -> CompiledRecipe;

}  // namespace shardc
