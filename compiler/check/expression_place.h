// Where a fault inside a value stands in the recipe.
#pragma once

#include <string_view>

#include "compiler/diag/source.h"

namespace shardc {

/// The range of the value at `at` that holds bytes [column - 1, column - 1 + length) of its content, seen through the
/// quotes and escapes of the TOML string that holds it. The whole value if the content spans lines.
auto PlaceInValue(const SourceSet& sources, const SourceRange& at, int column, int length) -> SourceRange;

/// The place of `item` in a list of texts at `list`; the list itself where the item is not found on its first line.
auto PlaceInList(const SourceSet& sources, const SourceRange& list, std::string_view item) -> SourceRange;

}  // namespace shardc
