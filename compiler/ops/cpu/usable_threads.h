// How many compute threads of a rank can have work: no op is cut into more parts than its sizes give, so that threads
// beyond the most parts would be made for nothing. A rank starts no more than these, and memory is counted for these.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Elements that make it worth to wake one more thread, for loops of a few operations an element.
constexpr int64_t ElementsPerThread = 32768;
/// Columns that one thread takes at least if each takes a range of every row: a few lines of cache.
constexpr int64_t LeastColumns = 128;

/// Returns how many rows of `columns` elements one thread takes at least.
constexpr auto RowsPerThread(int64_t columns) -> int64_t {
  return CeilDiv(ElementsPerThread, std::max<int64_t>(columns, 1));
}

/// Returns how many rows of `half` sines one thread takes at least: a sine takes as long as dozens of plain operations.
constexpr auto SinesPerThread(int64_t half) -> int64_t { return CeilDiv(RowsPerThread(half), 32); }

struct UsableThreads {
  /// The calling one among them: 1 at least.
  int64_t all = 1;
  /// Threads among them that multiply matrices: each has buffers and kernels of LibTorch's for it.
  int64_t products = 1;
};

/// Returns how many of `threads`, with which a rank may compute, have work. Cost: one look at each op.
auto UsableThreadsOf(const Plan& plan, int64_t threads) -> UsableThreads;

}  // namespace shardc
