// How much memory a device of the family Cuda makes initial values in: some at a time, as f32, which are then summed
// and stored in the type of their parameter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/units.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Bytes for what a rule's program reads, the sums and the result.
constexpr int64_t DrawHeadBytes = int64_t{64} << 10;

/// Returns the elements that are made at a time for a slice of so many: at most 16 MiB of them, which stay in the
/// caches of a GPU until they are stored. A multiple of 4, as random words are drawn.
inline auto DrawnAtOnce(int64_t slice) -> int64_t {
  constexpr int64_t Most = int64_t{4} << 20;
  return std::min(Most, RoundUp(slice, 4));
}

inline auto ScratchOfDraws(int64_t slice) -> int64_t { return DrawHeadBytes + DrawnAtOnce(slice) * SizeOf(DType::F32); }

}  // namespace shardc
