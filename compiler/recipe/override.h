// Changes of a recipe by the command line: `--set section.key=value`, a recipe text of one key, whose value may be a
// bare word; and `--unset section.key`, which takes a key out.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// The override in `source` as a root table with one section of one key. The value is what TOML makes of it, or else
/// the text itself. Errors: bad-override, and those of CheckText.
auto ParseOverride(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode>;

/// The text of an override that takes a key out: "--unset data.tokens".
constexpr std::string_view UnsetPrefix = "--unset ";
inline auto IsUnset(std::string_view override_text) -> bool { return override_text.starts_with(UnsetPrefix); }

/// Takes the key or list that `source` names, "data.tokens", out of a recipe. Errors: bad-override if no recipe has
/// such a key.
auto TakeOut(const SourceSet& sources, int16_t source, TomlNode& recipe, Diagnostics& diagnostics) -> void;

}  // namespace shardc
