// A text cut at its separators. All results are views of the text.
#pragma once

#include <string_view>
#include <vector>

namespace shardc {

/// Returns the parts between separators: one more than there are separators, and so one of an empty text.
auto SplitAt(std::string_view text, std::string_view separator) -> std::vector<std::string_view>;
/// Returns the lines without their ends. The last line may lack an end.
auto SplitLines(std::string_view text) -> std::vector<std::string_view>;
/// Returns the parts between any of the characters that are not empty.
auto SplitWords(std::string_view text, std::string_view between = " ") -> std::vector<std::string_view>;

}  // namespace shardc
