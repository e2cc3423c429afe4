// Draws elements in pieces, each of which is counted and summed while it is still in the cache: what is drawn is known
// for a few per cent of what it costs to draw.
#pragma once

#include <algorithm>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "runtime/init/drawn.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

/// Calls draw(piece, to) for stretches of `elements`, in order; `out` is where the first of them goes, `center` the
/// mean of their rule. Counts in `drawn` if there is one.
/// Errors: those of `draw`.
template <class T, class Draw>
auto DrawInPieces(const Loops& loops, Interval elements, T* out, double center, Drawn* drawn, const Draw& draw)
    -> Status {
  constexpr int64_t PieceSize = 16384;
  for (int64_t begin = elements.begin; begin < elements.end; begin += PieceSize) {
    const Interval piece{begin, std::min(elements.end, begin + PieceSize)};
    T* const to = out + (begin - elements.begin);
    RETURN_IF_ERROR(draw(piece, to));
    if (drawn != nullptr) {
      drawn->count += piece.size();
      loops.Of<T>().AddMoments(to, piece.size(), center, &drawn->sum, &drawn->squares);
    }
  }
  return Success{};
}

}  // namespace shardc
