// Real numbers as TOML and presets spell them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace shardc {

/// Returns the shortest text that reads back to the same number, always as a real one: "1.0", "1e-05".
inline auto RealText(double value) -> std::string {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace shardc
