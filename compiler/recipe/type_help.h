// What a value of the wrong type was probably meant to be.
#pragma once

#include <string>
#include <string_view>

#include "compiler/keys/sections.h"
#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// "write steps = 100", for a value that would be of the key's type without its quotes, in another unit, or in a list;
/// empty if none of these would do.
auto TypeHelp(const KeyInfo& key, const TomlNode& node) -> std::string;

/// "true" or "false", for a word or a number that people write for it elsewhere; else empty.
auto BoolMeant(std::string text) -> std::string_view;

}  // namespace shardc
