#include "compiler/diag/utf8.h"

#include <fmt/format.h>

#include "compiler/base/check.h"

namespace shardc {

auto TakeCodePoint(std::string_view& text) -> std::optional<char32_t> {
  CHECK(!text.empty(), "no code point in an empty text");
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 0x6 ? 2 : lead >> 4 == 0xe ? 3 : lead >> 3 == 0x1e ? 4 : 0;
  // The least code point of each length: below it, the form is overlong.
  constexpr char32_t Least[] = {0, 0, 0x80, 0x800, 0x10000};
  char32_t point = length < 2 ? lead : lead & (0x7fU >> length);
  bool is_valid = length > 0 && length <= text.size();
  for (size_t i = 1; is_valid && i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    is_valid = next >> 6 == 0x2;
    point = point << 6 | (next & 0x3fU);
  }
  is_valid = is_valid && point >= Least[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
  text.remove_prefix(is_valid ? length : 1);
  return is_valid ? std::optional(point) : std::nullopt;
}

auto Escaped(std::string_view text) -> std::string {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const auto point = TakeCodePoint(text);
    if (!point) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (*point >= 0x20 && *point < 0x7f) {
      result += static_cast<char>(*point);
    } else if (*point == '\n') {
      result += "\\n";
    } else if (*point == '\t') {
      result += "\\t";
    } else if (*point == '\r') {
      result += "\\r";
    } else if (*point > 0xffff) {
      result += fmt::format("\\U{:08x}", static_cast<uint32_t>(*point));
    } else {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(*point));
    }
  }
  return result;
}

}  // namespace shardc
