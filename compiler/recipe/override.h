// `--set section.key=value`: a recipe text of one key, whose value may be a bare word.
#pragma once

#include <optional>

#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// The override in `source` as a root table with one section of one key. The value is what TOML makes of it, or else
/// the text itself. Errors: bad-override, and those of CheckText.
auto ParseOverride(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode>;

}  // namespace shardc
