// The name of a run: same id, same run.
#pragma once

#include <string>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// start.run_id, or the recipe's file name without its extension.
auto RunIdOf(const Recipe& recipe) -> std::string;

}  // namespace shardc
