// The results of a function for all items of a range.
#pragma once

#include <functional>
#include <vector>

namespace shardc {

/// Returns what `function`, or a member, gives for each item, in their order.
template <class Result, class Range, class Function>
auto Mapped(Range&& range, const Function& function) -> std::vector<Result> {
  std::vector<Result> results;
  for (auto&& item : range) {
    results.emplace_back(std::invoke(function, item));
  }
  return results;
}

}  // namespace shardc
