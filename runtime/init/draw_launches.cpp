#include "runtime/init/draw_launches.h"

#include <algorithm>
#include <limits>

#include "compiler/base/check.h"
#include "compiler/base/units.h"
#include "compiler/expr/random.h"

namespace shardc {

auto DrawLaunches(const BoxInterval& elements, int64_t most) -> std::vector<DrawLaunch> {
  CHECK(most > 0 && most % ElementsPerBlock == 0 && most <= int64_t{1} << 30, "{} elements in a launch", most);
  // Whole rows are one long row.
  const bool is_whole = elements.is_whole_rows();
  const int64_t row = is_whole ? 0 : elements.row;
  const int64_t width = is_whole ? std::numeric_limits<int32_t>::max() : elements.columns.size();
  CHECK(width <= std::numeric_limits<int32_t>::max(), "rows of {} columns", width);
  // How many elements of the box come before this one of the parameter.
  const auto below = [&](int64_t element) {
    return is_whole ? element
                    : element / row * width + std::clamp<int64_t>(element % row - elements.columns.begin, 0, width);
  };
  std::vector<DrawLaunch> launches;
  for (int64_t at = elements.elements.begin; at < elements.elements.end;) {
    const int64_t first = elements.InMatrix(at) / ElementsPerBlock * ElementsPerBlock;
    const int64_t end = std::min(elements.elements.end, below(first + most));
    const int64_t column = is_whole ? 0 : at % width;
    launches.push_back({.first = first,
                        .made = RoundUp(elements.InMatrix(end - 1) + 1 - first, ElementsPerBlock),
                        .offset = at - elements.elements.begin,
                        .kept = end - at,
                        .base = elements.InMatrix(at) - column - first,
                        .row = row,
                        .width = static_cast<uint32_t>(width),
                        .column = static_cast<uint32_t>(column)});
    at = end;
  }
  return launches;
}

}  // namespace shardc
