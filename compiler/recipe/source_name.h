// The names of the sources of a mixture.
#pragma once

#include <cstddef>
#include <string>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// data.source.name, or "source" and its place in the list. Requires: index < recipe.data.source.size().
auto SourceName(const Recipe& recipe, size_t index) -> std::string;

}  // namespace shardc
