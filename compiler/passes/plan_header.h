// What a plan knows of its recipe besides ops: mesh, model, data and run.
#pragma once

#include <string>

#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Where runs/<run_id> goes.
auto RunDirOf(const Recipe& recipe) -> std::string;

/// Paths are resolved against the recipe's folder. Requires: the recipe was checked.
auto WriteHeader(Plan& plan, const Recipe& recipe) -> void;

}  // namespace shardc
