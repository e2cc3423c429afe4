// Numbers and lines of texts for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/units.h"

namespace shardc {

/// Characters of a line of a report, at most.
constexpr size_t ReportColumns = 100;

/// Returns 852992 as "852,992".
auto Grouped(int64_t n) -> std::string;
/// Returns "1 rank", "2 ranks".
auto Counted(int64_t n, std::string_view noun) -> std::string;
/// Returns "1,048,576 B".
auto BytesCell(Bytes bytes) -> std::string;
/// Returns "+1.00 GiB", "-1.00 GiB", "0 B".
auto SignedMemory(Bytes bytes) -> std::string;

/// Breaks a line before words that would pass ReportColumns; the lines after it are indented. Ends with a line end.
auto Wrapped(const std::string& line, size_t indent) -> std::string;
/// Clips lines that would pass ReportColumns, with "..." at their end.
auto ClippedLines(const std::string& lines) -> std::string;
auto LongestLine(const std::string& lines) -> size_t;
/// Returns the formula with its fractions in at most six digits.
auto WithShortNumbers(std::string_view formula) -> std::string;

}  // namespace shardc
