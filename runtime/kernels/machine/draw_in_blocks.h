// Draws elements in blocks, each of which is counted and summed while it is still in the cache: mean and spread of what
// is drawn cost a few per cent of the drawing.
#pragma once

#include <algorithm>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "runtime/init/drawn.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

/// Calls draw(block, to) for one block of `elements` after another; `out` is where the first element goes, `center` the
/// mean of their rule. Counts in `drawn` if there is one.
/// Errors: those of `draw`.
template <class T, class Draw>
auto DrawInBlocks(const Loops& loops, Interval elements, T* out, double center, Drawn* drawn, const Draw& draw)
    -> Status {
  constexpr int64_t BlockSize = 16384;
  for (int64_t begin = elements.begin; begin < elements.end; begin += BlockSize) {
    const Interval block{begin, std::min(elements.end, begin + BlockSize)};
    T* const to = out + (begin - elements.begin);
    RETURN_IF_ERROR(draw(block, to));
    if (drawn != nullptr) {
      drawn->count += block.size();
      loops.Of<T>().AddMoments(to, block.size(), center, &drawn->sum, &drawn->squares);
    }
  }
  return Success{};
}

}  // namespace shardc
