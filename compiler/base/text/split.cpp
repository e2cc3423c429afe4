#include "compiler/base/text/split.h"

#include <algorithm>

namespace shardc {

auto SplitAt(std::string_view text, std::string_view separator) -> std::vector<std::string_view> {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

auto SplitLines(std::string_view text) -> std::vector<std::string_view> {
  std::vector<std::string_view> lines = SplitAt(text, "\n");
  if (lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

auto SplitWords(std::string_view text, std::string_view between) -> std::vector<std::string_view> {
  std::vector<std::string_view> words;
  for (size_t begin = 0; (begin = text.find_first_not_of(between, begin)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(between, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace shardc
