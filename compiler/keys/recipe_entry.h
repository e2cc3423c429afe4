// A line `recipe` of a plan: a key and its value as text. plan_keys.h reads it.
#pragma once

#include <cstdint>
#include <string>

namespace shardc {

/// A key of the recipe, with its value in TOML: "optimizer.lr", "0.001"; the tables of a list are one value.
struct RecipeEntry {
  std::string key;
  std::string value;
  /// The line that sets the key beside the preset that the recipe names; 0 of other keys.
  int32_t line = 0;
  /// The recipe leaves the key out, and has no default for it: the value is there so that the recipe can be planned.
  bool is_assumed = false;

  friend auto operator==(const RecipeEntry&, const RecipeEntry&) -> bool = default;
};

}  // namespace shardc
