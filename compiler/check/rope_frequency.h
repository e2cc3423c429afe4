// The rotary frequencies of a recipe: model.rope_frequency with everything known put in.
#pragma once

#include "compiler/expr/expr.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// A formula of the pair, index(0). Requires: sound sizes of the model; the text parses.
/// Errors: as of ReduceRule, at places of the recipe's text.
auto ReduceRopeFrequency(const Recipe& recipe) -> ExprResult<Expr>;

}  // namespace shardc
