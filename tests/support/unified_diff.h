// Two texts, line by line, as `diff -u` shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardc {

/// Returns "" if the texts are equal; else two lines with the names, and hunks with `context` lines around each change.
/// Cost: lines of one text times lines of the other, between the first and the last difference; past 16 million, what
/// lies between shows as replaced.
auto UnifiedDiff(std::string_view before, std::string_view after, std::string_view before_name,
                 std::string_view after_name, size_t context = 3) -> std::string;

/// Returns the text that `diff`, a result of UnifiedDiff, makes of `before`; nothing if a line of `before` is not as
/// the difference has it.
auto Patched(std::string_view before, std::string_view diff) -> std::optional<std::string>;

}  // namespace shardc
