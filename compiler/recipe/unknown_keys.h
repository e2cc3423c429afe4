// What a recipe names and no row of recipe_keys.def has: the error, and what was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// Reports an entry of the table that messages call `where`, whose keys are `siblings`. Returns the sibling that was
/// probably meant, so that nobody reports that it is missing; empty if there is none.
/// A key that another table has counts as that key, not as a misspelt sibling: `lr` in [mesh] is optimizer.lr, not dp.
auto ReportUnknownKey(const TomlEntry& entry, const std::string& where, const std::vector<std::string_view>& siblings,
                      Diagnostics& diagnostics) -> std::string;
/// Reports a table or a key at the top level. Returns the section that was probably meant, or "".
auto ReportUnknownAtTop(const TomlEntry& entry, Diagnostics& diagnostics) -> std::string;

}  // namespace shardc
