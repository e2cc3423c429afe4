// What a recipe names and no row of recipe_keys.def has: the error, and what was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// What was probably meant by a name that is not known.
struct Meant {
  /// The key beside it, or the section; empty if there is none.
  std::string name;
  /// Keys that people were told to write in its place, as "batch.global".
  std::vector<std::string> keys;
};

/// Reports an entry of the table that messages call `where`, whose keys are `siblings`. Nobody reports that what was
/// meant is missing. A key that another table has counts as that key, not as a misspelt sibling: `lr` in [mesh] is
/// optimizer.lr, not dp.
auto ReportUnknownKey(const TomlEntry& entry, const std::string& where, const std::vector<std::string_view>& siblings,
                      Diagnostics& diagnostics) -> Meant;
/// Reports a table or a key at the top level.
auto ReportUnknownAtTop(const TomlEntry& entry, Diagnostics& diagnostics) -> Meant;

}  // namespace shardc
