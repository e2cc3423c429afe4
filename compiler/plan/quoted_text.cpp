#include "compiler/plan/quoted_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace shardc {

/// By character: 2 if a bare word may begin with it, 1 if a bare word may only contain it.
static constexpr auto BareCharacters = [] {
  std::array<uint8_t, 256> table{};
  for (const char c : std::string_view(".-+/*#")) {
    table[static_cast<uint8_t>(c)] = 1;
  }
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")) {
    table[static_cast<uint8_t>(c)] = 2;
  }
  return table;
}();

auto IsBareCharacter(char c) -> bool { return BareCharacters[static_cast<uint8_t>(c)] != 0; }

auto IsBare(std::string_view text) -> bool {
  return !text.empty() && BareCharacters[static_cast<uint8_t>(text.front())] == 2 &&
         std::all_of(text.begin(), text.end(), [](char c) { return BareCharacters[static_cast<uint8_t>(c)] != 0; });
}

auto Quote(std::string_view text) -> std::string {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\n': quoted += "\\n"; break;
      case '\t': quoted += "\\t"; break;
      case '\r': quoted += "\\r"; break;
      default:
        if (c >= ' ' && c <= '~') {
          quoted += c;
        } else {
          quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
  }
  return quoted + '"';
}

auto QuoteIfNeeded(std::string_view text) -> std::string { return IsBare(text) ? std::string(text) : Quote(text); }

}  // namespace shardc
