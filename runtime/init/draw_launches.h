// How the elements of a parameter that a rank owns are made by kernels that make consecutive elements of the whole
// parameter, in blocks of ElementsPerBlock: in which launches, and which of the elements that a launch makes are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/mesh/box_interval.h"

namespace shardc {

struct DrawLaunch {
  /// The first element that is made, and how many are: multiples of ElementsPerBlock. The last ones may lie past the
  /// end of the parameter.
  int64_t first = 0;
  int64_t made = 0;
  /// The elements that are kept: so many of the interval, from this one of it on.
  int64_t offset = 0;
  int64_t kept = 0;
  /// Kept element i is element `base + q / width * row + q % width` of those that are made, where q is i + column:
  /// rows of `row` elements, of which these columns of a box of `width` columns are kept. Numbers of kept elements, and
  /// their sums with `column`, fit 32 bits.
  int64_t base = 0;
  int64_t row = 0;
  uint32_t width = 1;
  uint32_t column = 0;

  friend auto operator==(const DrawLaunch&, const DrawLaunch&) -> bool = default;
};

/// Returns the launches that make `elements`, in their order. None makes more than `most` elements, a multiple of
/// ElementsPerBlock of at most 2^30. Elements between the columns that are kept are made and dropped.
auto DrawLaunches(const BoxInterval& elements, int64_t most) -> std::vector<DrawLaunch>;

}  // namespace shardc
