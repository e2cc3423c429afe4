// Where a path of a recipe leads.
#pragma once

#include <filesystem>
#include <string>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// Against the recipe's folder, which is as the recipe was named: relative paths stay relative to the current folder.
inline auto ResolvedPath(const Recipe& recipe, const std::string& path) -> std::string {
  return (std::filesystem::path(recipe.path).parent_path() / path).lexically_normal().string();
}

}  // namespace shardc
