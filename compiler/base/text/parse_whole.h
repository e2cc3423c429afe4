// Numbers that are a whole text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace shardc {

/// Returns the number that the whole text is, as std::from_chars reads it: no sign `+`, no spaces. Nothing if the text
/// is no number, or one that Number does not hold. Real numbers may be infinite or NaN.
template <class Number>
auto ParseWhole(std::string_view text) -> std::optional<Number> {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace shardc
