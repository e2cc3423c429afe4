// Refuses texts that are no recipes before the TOML parser sees them: its recursion is as deep as a dotted key is long.
#pragma once

#include <cstdint>

#include "compiler/diag/diagnostics.h"

namespace shardc {

constexpr int64_t MaxRecipeBytes = int64_t{1} << 20;
constexpr int64_t MaxLineBytes = int64_t{64} << 10;
constexpr int64_t MaxKeySegments = 16;

/// True if the text of `source` may be parsed. Errors: recipe-too-large, key-too-deep, toml-syntax (a NUL byte).
auto CheckText(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> bool;

}  // namespace shardc
