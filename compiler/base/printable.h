// Text of files, paths and arguments made safe to print: what a terminal would act on, or what a reader cannot see or
// would read in another order, is spelled out (`\n`, `\u202e`, `\xff`). Escaped is for quoted pieces, and keeps ASCII
// alone; Printable is for whole messages, which keep letters of any script and their lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardc {

/// Takes one UTF-8 code point off the front of `text`, or one byte if there is no code point (overlong forms and
/// surrogates included): then nothing is returned, as of an empty text.
auto TakeCodePoint(std::string_view& text) -> std::optional<char32_t>;

/// `text` in printable ASCII.
auto Escaped(std::string_view text) -> std::string;

/// `text` with its newlines and tabs; other control and format characters, and what is not UTF-8, are escaped. To be
/// called once, where a message leaves the program, before colours are added.
auto Printable(std::string_view text) -> std::string;

/// Printable, for a name within a line: newlines and tabs are escaped too.
auto PrintableLine(std::string_view text) -> std::string;

}  // namespace shardc
