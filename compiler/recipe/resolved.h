// The recipe that a plan was made from, with every default put in: one entry per key, in the order of
// schemas/recipe_keys.def. Two recipes that differ in layout, comments or spelled-out defaults alone have equal
// entries.
#pragma once

#include <string>
#include <vector>

#include "compiler/recipe/recipe.h"

namespace shardc {

struct ResolvedKey {
  /// "optimizer.lr"; of a list, "init.rule".
  std::string path;
  /// In TOML; of a list, an array of inline tables.
  std::string value;
  /// Where the recipe sets a key beside the preset that it names, a key of the model or init.scheme, to something else
  /// than a default that the preset leaves alone; 0 of all others.
  int32_t line_beside_preset = 0;
  bool is_assumed = false;
};

/// Keys that are unset and have no default are left out, and so are empty lists and unset keys without effect. The
/// lines `path = value` are a recipe that reads back to the same one.
auto ResolvedKeys(const Recipe& recipe) -> std::vector<ResolvedKey>;

}  // namespace shardc
