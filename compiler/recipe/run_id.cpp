// The name of a run, from the recipe or from its file.

#include "compiler/recipe/run_id.h"

#include <filesystem>

namespace shardc {

auto RunIdOf(const Recipe& recipe) -> std::string {
  return recipe.start.run_id.is_set ? *recipe.start.run_id : std::filesystem::path(recipe.path).stem().string();
}

}  // namespace shardc
