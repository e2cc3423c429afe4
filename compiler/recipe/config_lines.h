// The parts of the makers of recipes from configurations; included by them only.
#pragma once

#include <string>
#include <string_view>

#include "compiler/recipe/config_tree.h"
#include "compiler/recipe/other_config.h"
#include "compiler/recipe/recipe_lines.h"

namespace shardc {

/// Adds a line for each row CARRIED of the configuration's program, but for those of keys that stand for the model.
auto AddCarried(OtherConfig& config, RecipeLines& lines) -> void;

/// Adds mesh.dp: the number that a configuration gives, or for -1, all other ranks, one that divides the batch.
auto AddRanks(RecipeLines& lines, int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t replicate) -> void;

/// Adds the lines of a recipe that a configuration of torchtitan makes.
auto AddTorchtitan(const ConfigTree& tree, OtherConfig& config, RecipeLines& lines) -> void;

/// Adds the lines of a recipe that a configuration of KempnerForge makes.
auto AddKempnerForge(const ConfigTree& tree, OtherConfig& config, RecipeLines& lines) -> void;

}  // namespace shardc
