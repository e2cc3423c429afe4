// Two texts, line by line, as `diff -u` shows them.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// Empty where the texts are equal; else two lines with the names, and hunks with three lines of context.
/// Cost: lines of one text times lines of the other, between the first and the last difference; past 16 million, what
/// lies between shows as replaced.
auto UnifiedDiff(std::string_view before, std::string_view after, std::string_view before_name,
                 std::string_view after_name) -> std::string;

}  // namespace shardc
