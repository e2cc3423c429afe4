// Work split over the compute threads of a rank. No result may depend on how many there are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/units.h"

namespace shardc {

/// As SetComputeThreads left it; 1 before.
auto ComputeThreads() -> int64_t;

/// Elements that make it worth to wake one more thread, for loops of a few operations an element.
constexpr int64_t ElementsPerThread = 32768;

/// Rows of `columns` elements that one thread takes at least.
constexpr auto RowsPerThread(int64_t columns) -> int64_t {
  return CeilDiv(ElementsPerThread, std::max<int64_t>(columns, 1));
}

/// Calls body(share) for 0 <= share < shares, each on a thread of its own. Requires: shares <= ComputeThreads(), unless
/// there is one.
template <class Body>
auto ParallelShares(int64_t shares, const Body& body) -> void {
  if (shares <= 1) {
    body(int64_t{0});
    return;
  }
#pragma omp parallel for num_threads(shares) schedule(static)
  for (int64_t share = 0; share < shares; ++share) {
    body(share);
  }
}

/// Calls body(begin, end) for contiguous ranges that cover [0, count), of at least `least` each, on the compute
/// threads. Requires: the cuts do not matter to the result; body does not throw.
template <class Body>
auto ParallelRanges(int64_t count, int64_t least, const Body& body) -> void {
  const int64_t most = count / std::max<int64_t>(least, 1);
  const int64_t parts = std::clamp<int64_t>(most, 1, ComputeThreads());
  ParallelShares(parts, [&](int64_t part) { body(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace shardc
