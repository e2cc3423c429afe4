// Lists in sentences.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace shardc {

/// Returns "a", "a and b", "a, b and c".
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

/// Returns at most `most` of the items, and how many more there are: "a, b and 7 more".
template <class Items>
auto Listed(const Items& items, size_t most, std::string_view separator = ", ", std::string_view before_rest = " and ")
    -> std::string {
  const size_t num_listed = std::min(most, std::size(items));
  const auto end = std::next(std::begin(items), static_cast<ptrdiff_t>(num_listed));
  const size_t num_left = std::size(items) - num_listed;
  return fmt::format("{}{}", fmt::join(std::begin(items), end, separator),
                     num_left == 0 ? "" : fmt::format("{}{} more", before_rest, num_left));
}

}  // namespace shardc
