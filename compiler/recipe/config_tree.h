// A configuration of another trainer, in TOML or in JSON, as one tree of typed leaves.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// A resolved configuration in JSON repeats each block of its model: 0.6 MB for 126 blocks.
constexpr int64_t MaxConfigBytes = int64_t{16} << 20;

struct ConfigTree {
  TomlNode root;
  bool is_json = false;
};

/// Parses TOML, or JSON if the text begins with `{`. A null of JSON is a key that is not there. Whole numbers that do
/// not fit 64 bits are real ones.
/// Errors: RecipeRejected, with the name of the file and, of TOML, the line.
auto ParseConfig(const std::string& name, std::string text) -> ErrorOr<ConfigTree>;

/// Returns the entry of a table; null if it lacks the key, or is another value.
auto EntryOf(const TomlNode& node, std::string_view key) -> const TomlNode*;

/// Returns a value as TOML; a table is "a table", a date is "a date".
auto TextOf(const TomlNode& node) -> std::string;

}  // namespace shardc
