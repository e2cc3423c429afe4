// A recipe to begin with, made of a configuration of torchtitan (v0.2.2): a start, and no converter to rely on.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

struct TorchtitanRecipe {
  /// The recipe. torchtitan's defaults are written out; what it cannot say stands at its top, as comments.
  std::string text;
  /// A line for each setting that the recipe does not have: "[section] key = value: why".
  std::vector<std::string> not_carried;
};

/// Makes a recipe of a configuration in TOML; `name` is that of its file. Errors: RecipeRejected if it is not TOML, or
/// torchtitan has no more than half of its settings.
auto RecipeFromTorchtitan(const std::string& name, std::string text) -> ErrorOr<TorchtitanRecipe>;

}  // namespace shardc
