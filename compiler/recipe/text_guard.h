// Refuses texts that are no recipes before the TOML parser sees them: its recursion, and ours over its tree, is as deep
// as dotted keys, inline tables and lists are in each other.
#pragma once

#include <cstdint>

#include "compiler/diag/diagnostics.h"

namespace shardc {

constexpr int64_t MaxRecipeBytes = int64_t{1} << 20;
constexpr int64_t MaxLineBytes = int64_t{64} << 10;
constexpr int64_t MaxKeyParts = 16;
/// Brackets that are open, and the parts of the keys before them.
constexpr int64_t MaxDepth = 512;

/// True if the text of `source` may be parsed. Errors: recipe-too-large, key-too-deep, value-too-deep, toml-syntax (a
/// NUL byte, UTF-16).
auto CheckText(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> bool;

}  // namespace shardc
