// Which keys of [optimizer] belong to one optimizer alone.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// The optimizer that alone has this key of [optimizer]; none if all have it.
auto OwnerOfKey(std::string_view key) -> std::optional<Optimizer>;

/// Is `section.key` a key that the recipe's optimizer lacks? An optimizer that there is not lacks none.
auto IsLacked(const Recipe& recipe, std::string_view section, std::string_view key) -> bool;

}  // namespace shardc
