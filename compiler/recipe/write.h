// The effective recipe as text.
#pragma once

#include <string>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// The recipe with all defaults, each line with where its value comes from; reads back to the same recipe.
auto PrintRecipe(const Recipe& recipe) -> std::string;

}  // namespace shardc
