// [model] and [init] of a configuration of torchtitan.
#pragma once

#include "compiler/recipe/config_tree.h"
#include "compiler/recipe/other_config.h"
#include "compiler/recipe/recipe_lines.h"

namespace shardc {

/// Adds the preset that a name and a flavor are in TOML, or what to do without one.
auto AddTorchtitanFlavor(OtherConfig& config, RecipeLines& lines) -> void;

/// Adds the sizes of `model_spec` of a resolved configuration. Adds faults for what no family here computes.
auto AddTorchtitanSpec(const TomlNode& root, OtherConfig& config, RecipeLines& lines) -> void;

}  // namespace shardc
