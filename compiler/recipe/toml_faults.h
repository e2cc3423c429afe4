// What the TOML library says of a text, in our words: the rows of schemas/toml_faults.def.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardc {

struct TomlFaultRow {
  /// A text of which the library says this.
  std::string_view example;
  /// With `*` for any characters.
  std::string_view pattern;
  /// A format over what the stars stand for.
  std::string_view message;
  std::string_view help;
};

auto TomlFaultRows() -> std::span<const TomlFaultRow>;

struct WordedFault {
  std::string message;
  std::string help;
  /// Null for a text of the library that no row knows; `message` quotes it then.
  const TomlFaultRow* row = nullptr;
};

auto WordTomlFault(std::string_view library_text) -> WordedFault;

}  // namespace shardc
