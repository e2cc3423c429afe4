#include "compiler/diag/source.h"

#include <limits>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

auto SourceSet::Add(std::string name, std::string text) -> int16_t {
  CHECK(texts_.size() < std::numeric_limits<int16_t>::max(), "{} texts", texts_.size());
  std::vector<size_t> starts{0};
  for (size_t newline = text.find('\n'); newline != std::string::npos; newline = text.find('\n', newline + 1)) {
    starts.push_back(newline + 1);
  }
  texts_.push_back({std::move(name), std::move(text)});
  line_starts_.push_back(std::move(starts));
  return static_cast<int16_t>(texts_.size() - 1);
}

auto SourceSet::Line(const SourceRange& at) const -> std::string_view {
  if (at.source < 0 || at.source >= size() || at.line < 1) {
    return {};
  }
  const std::vector<size_t>& starts = line_starts_[static_cast<size_t>(at.source)];
  const auto line = static_cast<size_t>(at.line) - 1;
  if (line >= starts.size()) {
    return {};
  }
  const std::string_view text = (*this)[at.source].text;
  const size_t end = line + 1 < starts.size() ? starts[line + 1] - 1 : text.size();
  const std::string_view result = text.substr(starts[line], end - starts[line]);
  return result.ends_with('\r') ? result.substr(0, result.size() - 1) : result;
}

}  // namespace shardc
