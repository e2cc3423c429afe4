// The recipe that a plan was made from, with every default put in. Two recipes that differ in layout, comments or
// spelled-out defaults alone have equal keys.
#pragma once

#include <vector>

#include "compiler/keys/model_sizes.h"
#include "compiler/keys/plan_keys.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Returns the keys. Unset are those that the recipe leaves out and that have no default, or no effect. The recipe may
/// have faults: then a word may be one that its key does not take.
auto KeysOf(const Recipe& recipe) -> PlanKeys;

/// Returns the keys as entries, with the line of a key that the recipe sets beside the preset that it names: a key of
/// the model or init.scheme, to something else than a default that the preset leaves alone. The lines `key = value` are
/// a recipe that reads back to the same one.
auto ResolvedKeys(const Recipe& recipe) -> std::vector<RecipeEntry>;

/// Returns the sizes of the recipe's model. Requires: heads > 0.
auto ResolveModel(const Recipe& recipe) -> ModelSizes;

}  // namespace shardc
