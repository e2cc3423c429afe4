#include "compiler/base/text/numbers_and_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "compiler/base/text/split.h"

namespace shardc {

auto Grouped(int64_t n) -> std::string {
  std::string digits = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return digits;
}

auto Counted(int64_t n, std::string_view noun) -> std::string {
  return fmt::format("{} {}{}", Grouped(n), noun, n == 1 ? "" : "s");
}

auto BytesCell(Bytes bytes) -> std::string { return Grouped(bytes.value) + " B"; }

auto SignedMemory(Bytes bytes) -> std::string {
  return bytes < Bytes{}   ? "-" + FormatMemory(Bytes{} - bytes)
         : bytes > Bytes{} ? "+" + FormatMemory(bytes)
                           : FormatMemory(bytes);
}

auto Wrapped(const std::string& line, size_t indent) -> std::string {
  std::string out;
  std::string_view rest = line;
  while (rest.size() + (out.empty() ? 0 : indent) > ReportColumns) {
    const size_t columns = ReportColumns - (out.empty() ? 0 : indent);
    const size_t first_word = rest.find_first_not_of(' ');
    const size_t space = rest.rfind(' ', columns);
    const size_t cut = space != std::string_view::npos && space > first_word ? space : rest.find(' ', columns);
    if (cut == std::string_view::npos) {
      break;
    }
    out += fmt::format("{}{}\n", std::string(out.empty() ? 0 : indent, ' '), rest.substr(0, cut));
    rest.remove_prefix(cut + 1);
  }
  return out + std::string(out.empty() ? 0 : indent, ' ') + std::string(rest) + "\n";
}

auto ClippedLines(const std::string& lines) -> std::string {
  constexpr std::string_view Dots = "...";
  std::string out;
  for (const std::string_view line : SplitLines(lines)) {
    const bool is_long = line.size() > ReportColumns;
    out += fmt::format("{}{}\n", is_long ? line.substr(0, ReportColumns - Dots.size()) : line, is_long ? Dots : "");
  }
  return out;
}

auto LongestLine(const std::string& lines) -> size_t {
  size_t longest = 0;
  for (const std::string_view line : SplitLines(lines)) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

auto WithShortNumbers(std::string_view formula) -> std::string {
  std::string text;
  bool is_in_name = false;
  for (size_t i = 0; i < formula.size();) {
    const auto c = static_cast<unsigned char>(formula[i]);
    is_in_name = is_in_name != (c == '\'');
    const bool is_inside =
        i > 0 && (std::isalnum(static_cast<unsigned char>(formula[i - 1])) != 0 || formula[i - 1] == '_');
    double number = 0;
    const char* const begin = formula.data() + i;
    const auto [end, fault] = std::from_chars(begin, formula.data() + formula.size(), number);
    if (std::isdigit(c) == 0 || is_in_name || is_inside || fault != std::errc()) {
      text += formula[i++];
      continue;
    }
    const std::string_view digits(begin, static_cast<size_t>(end - begin));
    text += digits.find('.') == std::string_view::npos ? std::string(digits) : fmt::format("{:.6g}", number);
    i += digits.size();
  }
  return text;
}

}  // namespace shardc
