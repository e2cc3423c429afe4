#include "compiler/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace shardc {

auto TakeCodePoint(std::string_view& text) -> std::optional<char32_t> {
  if (text.empty()) {
    return std::nullopt;
  }
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

/// What was taken off a text, spelled out: `point`, or `byte` where there is no code point.
static auto Spelled(std::optional<char32_t> point, unsigned char byte) -> std::string {
  if (!point) {
    return fmt::format("\\x{:02x}", byte);
  }
  switch (*point) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: break;
  }
  return *point > 0xffff ? fmt::format("\\U{:08x}", static_cast<uint32_t>(*point))
                         : fmt::format("\\u{:04x}", static_cast<uint32_t>(*point));
}

/// Control characters, format characters (general category Cf, Unicode 15), line and paragraph separators, and
/// noncharacters.
static auto IsUnseen(char32_t point) -> bool {
  struct Range {
    char32_t first;
    char32_t last;
  };
  // In order.
  constexpr Range Ranges[] = {
      {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},
      {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x180e, 0x180e},
      {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},
      {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
      {0x1d173, 0x1d17a}, {0xe0001, 0xe007f},
  };
  const auto* range = std::lower_bound(std::begin(Ranges), std::end(Ranges), point,
                                       [](const Range& r, char32_t p) { return r.last < p; });
  return (range != std::end(Ranges) && range->first <= point) || (point & 0xfffeU) == 0xfffeU;
}

/// `text` with each code point spelled out that `is_kept` does not keep, and each byte that is none.
template <typename IsKept>
static auto Filtered(std::string_view text, const IsKept& is_kept) -> std::string {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const auto point = TakeCodePoint(text);
    if (point && is_kept(*point)) {
      result += before.substr(0, before.size() - text.size());
    } else {
      result += Spelled(point, static_cast<unsigned char>(before.front()));
    }
  }
  return result;
}

auto Escaped(std::string_view text) -> std::string {
  return Filtered(text, [](char32_t point) { return point >= 0x20 && point < 0x7f; });
}

auto Printable(std::string_view text) -> std::string {
  return Filtered(text, [](char32_t point) { return point == '\n' || point == '\t' || !IsUnseen(point); });
}

auto PrintableLine(std::string_view text) -> std::string {
  return Filtered(text, [](char32_t point) { return !IsUnseen(point); });
}

}  // namespace shardc
