// A start of a recipe from a configuration of another trainer: for `shardc new --from`.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/recipe/config_tree.h"
#include "compiler/recipe/other_config.h"

namespace shardc {

struct ConvertedRecipe {
  /// Holds the settings that are not carried over as comments too.
  std::string text;
  /// One line for each setting that no key of a recipe says.
  std::vector<std::string> not_carried;
};

/// Makes a recipe of a configuration of torchtitan or KempnerForge, whose file is called `name`: what it says and what
/// its defaults are, as far as keys of recipes can say it.
/// Errors: RecipeRejected for a text that is neither, and for a model, a size or a length that cannot be carried over.
auto RecipeFromConfig(const std::string& name, std::string text) -> ErrorOr<ConvertedRecipe>;

}  // namespace shardc
