// A stretch of a matrix of which a rank may hold some columns only: flat and row-major, not of the matrix, but of a
// box, the stretch of columns. One rank's part of a matrix cut along its columns is no range of the matrix's own
// elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/mesh/mesh.h"

namespace shardc {

struct BoxRange {
  /// Of the box, flat.
  Interval elements;
  /// Elements of a whole row of the matrix; 1 for a range of whole rows, where it does not matter.
  int64_t row = 1;
  /// The box: these of each row.
  Interval columns{0, 1};

  /// Elements [begin, end) of a matrix, or of any tensor.
  static auto Of(Interval elements) -> BoxRange { return {.elements = elements, .row = 1, .columns = {0, 1}}; }
  auto is_whole_rows() const -> bool { return columns.begin == 0 && columns.end == row; }
  friend auto operator==(const BoxRange&, const BoxRange&) -> bool = default;
};

/// Calls function(begin, end, offset): elements [begin, end) of the matrix, which lie `offset` elements behind the
/// range's first.
template <class Function>
auto ForEachRun(const BoxRange& range, Function&& function) -> void {
  if (range.elements.empty()) {
    return;
  }
  if (range.is_whole_rows()) {
    function(range.elements.begin, range.elements.end, int64_t{0});
    return;
  }
  const int64_t width = range.columns.size();
  for (int64_t at = range.elements.begin; at < range.elements.end;) {
    const int64_t end = std::min(range.elements.end, (at / width + 1) * width);
    const int64_t begin = at / width * range.row + range.columns.begin + at % width;
    function(begin, begin + (end - at), at - range.elements.begin);
    at = end;
  }
}

/// Calls function(in_a, in_b, count) for each run of elements that both ranges hold: `count` elements that lie `in_a`
/// elements behind the first of a, and `in_b` behind that of b.
/// Requires: both are of one matrix.
template <class Function>
auto ForEachCommonRun(const BoxRange& a, const BoxRange& b, Function&& function) -> void {
  if ((a.is_whole_rows() && b.is_whole_rows()) || (a.row == b.row && a.columns == b.columns)) {
    const Interval common = Intersect(a.elements, b.elements);
    if (!common.empty()) {
      function(common.begin - a.elements.begin, common.begin - b.elements.begin, common.size());
    }
    return;
  }
  // One of them says how long rows are; the other, of whole rows, may leave that out.
  const int64_t row = std::max(a.row, b.row);
  const auto columns_of = [&](const BoxRange& range) {
    return range.is_whole_rows() ? Interval{0, row} : range.columns;
  };
  const Interval of_a = columns_of(a);
  const Interval of_b = columns_of(b);
  const Interval columns = Intersect(of_a, of_b);
  if (columns.empty() || a.elements.empty() || b.elements.empty()) {
    return;
  }
  const int64_t first = std::max(a.elements.begin / of_a.size(), b.elements.begin / of_b.size());
  const int64_t last = std::min((a.elements.end - 1) / of_a.size(), (b.elements.end - 1) / of_b.size());
  for (int64_t r = first; r <= last; ++r) {
    // Columns of this row that each range holds.
    const auto held = [&](const BoxRange& range, const Interval& box) {
      return Interval{std::max(columns.begin, range.elements.begin - r * box.size() + box.begin),
                      std::min(columns.end, range.elements.end - r * box.size() + box.begin)};
    };
    const Interval common = Intersect(held(a, of_a), held(b, of_b));
    if (!common.empty()) {
      function(r * of_a.size() + common.begin - of_a.begin - a.elements.begin,
               r * of_b.size() + common.begin - of_b.begin - b.elements.begin, common.size());
    }
  }
}

}  // namespace shardc
