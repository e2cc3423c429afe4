// Lists in sentences.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace shardc {

/// "a", "a and b", "a, b and c".
template <class Texts>
auto JoinedByAnd(const Texts& texts) -> std::string {
  std::string joined;
  size_t left = std::size(texts);
  for (const auto& text : texts) {
    --left;
    joined += fmt::format("{}{}", joined.empty() ? "" : left == 0 ? " and " : ", ", text);
  }
  return joined;
}

}  // namespace shardc
