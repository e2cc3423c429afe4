// Cross-key rules: whatever a recipe can get wrong that one key alone does not show. One file per section.
#pragma once

#include "compiler/recipe/recipe.h"

namespace shardc {

/// Reports every fault of a recipe that was read; nothing that depends on a faulty value is reported.
auto CheckRecipe(const Recipe& recipe, Diagnostics& diagnostics) -> void;

/// The three batch sizes, from the two given. Requires: CheckRecipe passed.
struct BatchSizes {
  int64_t global = 0;
  int64_t micro = 0;
  int64_t accumulate = 0;
};
auto ResolveBatch(const Recipe& recipe) -> BatchSizes;

}  // namespace shardc
