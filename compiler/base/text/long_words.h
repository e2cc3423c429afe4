// Names and values that a user gave may have any length, and a message has to be read.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// Returns the text with the middle of each word of more than 1,000 bytes replaced by "...". Words end at spaces and
/// line ends. No path or name that is in use is so long.
auto CutLongWords(std::string_view text) -> std::string;

}  // namespace shardc
