#include "compiler/base/text/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/base/printable.h"

namespace shardc {

auto JsonString(std::string_view text) -> std::string {
  std::string result = "\"";
  while (!text.empty()) {
    const char32_t point = TakeCodePoint(text).value_or(0xfffd);
    if (point == '"' || point == '\\') {
      result += '\\';
      result += static_cast<char>(point);
    } else if (point >= 0x20 && point < 0x7f) {
      result += static_cast<char>(point);
    } else if (point > 0xffff) {
      const auto offset = static_cast<uint32_t>(point) - 0x10000U;
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xd800U + (offset >> 10), 0xdc00U + (offset & 0x3ffU));
    } else {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(point));
    }
  }
  return result + '"';
}

auto JsonNumber(double value) -> std::string { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

auto JsonObject::Json(std::string_view name, std::string_view value) -> JsonObject& {
  members_ += fmt::format("{}{}:{}", members_.empty() ? "" : separator_, JsonString(name), value);
  return *this;
}

auto JsonList::Json(std::string_view item) -> JsonList& {
  items_ += fmt::format("{}{}", items_.empty() ? "" : ",", item);
  return *this;
}

}  // namespace shardc
