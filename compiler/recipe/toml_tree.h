// TOML as a plain tree with places: what the reader works on. Only toml_tree.cpp knows the TOML library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diag/diagnostics.h"

namespace shardc {

struct TomlEntry;

struct TomlNode {
  enum class Kind { Text, Int, Real, Bool, Date, Array, Table };

  Kind kind = Kind::Table;
  /// The first line of the value, quotes included; of a table, its header.
  SourceRange at;
  /// The value of Text.
  std::string text;
  int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<TomlNode> items;
  /// In the order of the text.
  std::vector<TomlEntry> entries;
  /// Of the value of a `--set`: the text as given, which keys of type Text take whatever TOML makes of it.
  std::string raw;
};

struct TomlEntry {
  std::string key;
  SourceRange key_at;
  TomlNode value;
};

/// "text \"4\"", "the whole number 4", "a list": how a message calls a value.
auto Describe(const TomlNode& node) -> std::string;

struct TomlFault {
  SourceRange at;
  std::string message;
};

/// Parses a text that passed CheckText. The result is the root table, or nothing and the first fault in `fault`, in the
/// words of the TOML library.
auto ParseToml(const SourceSet& sources, int16_t source, TomlFault& fault) -> std::optional<TomlNode>;

}  // namespace shardc
