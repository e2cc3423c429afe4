// Text of users made safe to print: what a terminal would act on, or a reader would take for another letter, is spelled
// out (`\n`, `\u202e`, `\xff`).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardc {

/// Takes one UTF-8 code point off the front of `text`, or one byte where there is none (overlong forms and surrogates
/// included): then nothing is returned. Requires: text is not empty.
auto TakeCodePoint(std::string_view& text) -> std::optional<char32_t>;

/// `text` in printable ASCII.
auto Escaped(std::string_view text) -> std::string;

}  // namespace shardc
