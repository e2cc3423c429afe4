// Words in the text of a plan that need quotes, and words that do not.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// Returns true if a character needs no quotes in a word: letters, digits, and _.-+/*#
auto IsBareCharacter(char c) -> bool;
/// Returns true if a word needs no quotes: bare characters, the first of them a letter, a digit or _.
auto IsBare(std::string_view text) -> bool;
/// Returns a bare text as it is, any other in quotes.
auto QuoteIfNeeded(std::string_view text) -> std::string;
/// Returns the text in double quotes, with \" \\ \n \t \r and \xHH for all that is not printable ASCII.
auto Quote(std::string_view text) -> std::string;

}  // namespace shardc
