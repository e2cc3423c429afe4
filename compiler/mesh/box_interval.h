// An interval of the elements of a box: the columns that a rank holds of a matrix, counted row by row. If the box has
// some of the columns only, such an interval is one interval of the matrix's own elements per row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"

namespace shardc {

struct BoxInterval {
  /// Of the box, flat.
  Interval elements;
  /// Elements of a whole row of the matrix; may be 1 if the box has whole rows.
  int64_t row = 1;
  /// The box: these columns of each row.
  Interval columns{0, 1};

  /// Elements [begin, end) of a matrix, or of any tensor.
  static auto Of(Interval elements) -> BoxInterval { return {.elements = elements, .row = 1, .columns = {0, 1}}; }
  auto is_whole_rows() const -> bool { return columns.begin == 0 && columns.end == row; }
  /// Returns the element of the matrix that an element of the box is.
  auto InMatrix(int64_t element) const -> int64_t {
    return is_whole_rows() ? element : element / columns.size() * row + columns.begin + element % columns.size();
  }
  friend auto operator==(const BoxInterval&, const BoxInterval&) -> bool = default;
};

/// Calls function(begin, end, offset) for each interval [begin, end) of the matrix's own elements, in order; `offset`
/// counts from the first element of `interval`.
template <class Function>
auto ForEachMatrixInterval(const BoxInterval& interval, Function&& function) -> void {
  if (interval.elements.empty()) {
    return;
  }
  if (interval.is_whole_rows()) {
    function(interval.elements.begin, interval.elements.end, int64_t{0});
    return;
  }
  const int64_t width = interval.columns.size();
  for (int64_t at = interval.elements.begin; at < interval.elements.end;) {
    const int64_t end = std::min(interval.elements.end, (at / width + 1) * width);
    const int64_t begin = interval.InMatrix(at);
    function(begin, begin + (end - at), at - interval.elements.begin);
    at = end;
  }
}

/// Calls function(piece, offset) for intervals of at most `most` elements, or a row of the box, until it fails;
/// `offset` counts from the first element of `interval`. A row is not cut if the box has some of the columns only.
template <class Function>
auto ForEachPiece(const BoxInterval& interval, int64_t most, const Function& function) -> Status {
  const int64_t width = interval.is_whole_rows() ? 1 : interval.columns.size();
  const int64_t step = std::max(most / width, int64_t{1}) * width;
  const Interval& all = interval.elements;
  for (int64_t begin = all.begin; begin < all.end;) {
    BoxInterval piece = interval;
    piece.elements = {begin, std::min(all.end, begin / width * width + step)};
    RETURN_IF_ERROR(function(piece, begin - all.begin));
    begin = piece.elements.end;
  }
  return Success{};
}

/// Calls function(in_a, in_b, count) for each interval of the matrix's own elements that both hold: `count` elements,
/// the first of which is element `in_a` of a and element `in_b` of b.
/// Requires: both are of one matrix.
template <class Function>
auto ForEachCommonInterval(const BoxInterval& a, const BoxInterval& b, Function&& function) -> void {
  if ((a.is_whole_rows() && b.is_whole_rows()) || (a.row == b.row && a.columns == b.columns)) {
    const Interval common = Intersect(a.elements, b.elements);
    if (!common.empty()) {
      function(common.begin - a.elements.begin, common.begin - b.elements.begin, common.size());
    }
    return;
  }
  // If a box has whole rows, its `row` may be 1: then the other says how long rows are.
  const int64_t row = std::max(a.row, b.row);
  const auto columns_of = [&](const BoxInterval& interval) {
    return interval.is_whole_rows() ? Interval{0, row} : interval.columns;
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
    // Columns of this row that each of the two holds.
    const auto held = [&](const BoxInterval& interval, const Interval& box) {
      return Interval{std::max(columns.begin, interval.elements.begin - r * box.size() + box.begin),
                      std::min(columns.end, interval.elements.end - r * box.size() + box.begin)};
    };
    const Interval common = Intersect(held(a, of_a), held(b, of_b));
    if (!common.empty()) {
      function(r * of_a.size() + common.begin - of_a.begin - a.elements.begin,
               r * of_b.size() + common.begin - of_b.begin - b.elements.begin, common.size());
    }
  }
}

}  // namespace shardc
