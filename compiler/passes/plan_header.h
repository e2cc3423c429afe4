// What a plan knows of its recipe besides ops: mesh, model, data and run.
#pragma once

#include <string>

#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Returns the folder of runs/<run_id>.
auto RunDirOf(const Recipe& recipe) -> std::string;

/// Writes the header of a plan. Paths are resolved against the recipe's folder. Requires: the recipe was checked.
auto WriteHeader(Plan& plan, const Recipe& recipe) -> void;

}  // namespace shardc
