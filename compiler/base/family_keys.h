// Which keys of [model] a family has, by the rows of schemas/families.def.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/base/recipe_words.h"

namespace shardc {

/// In the order of the family's row. The key `family` itself is not among them.
auto KeysOf(Family family) -> std::vector<std::string_view>;
auto HasKey(Family family, std::string_view key) -> bool;

/// Has each plan of the family a size or setting of this name? Those of the family's keys, and the two that follow from
/// other keys where a recipe does not set them.
auto HasSize(Family family, std::string_view key) -> bool;

}  // namespace shardc
