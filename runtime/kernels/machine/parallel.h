// Work split over the compute threads of a rank. No result may depend on how many there are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "compiler/base/units.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "runtime/kernels/machine/thread_pool.h"

namespace shardc {

/// As SetComputeThreads left it; 1 before.
auto ComputeThreads() -> int64_t;

/// Ranges that a loop is cut into for each thread: what another thread can take over when one is kept from its core.
constexpr int64_t RangesPerThread = 4;

/// Calls body(slot, tasks) on up to `threads` threads until all of `count` tasks are done; each slot is below `threads`
/// and is used by one thread at a time. See ThreadPool::Run.
template <class Body>
auto ParallelTasks(int64_t count, int64_t threads, const Body& body) -> void {
  if (count > 0) {
    ThreadPool::OfThisThread().Run(count, std::min(threads, ComputeThreads()), body);
  }
}

/// Calls body(slot, slots) once on each of `slots` threads, of `threads` where there are so many.
template <class Body>
auto OnEachThread(int64_t threads, const Body& body) -> void {
  ThreadPool::OfThisThread().RunOnEach(std::min(threads, ComputeThreads()), body);
}

/// A range begins at a multiple of so many, or of the next power of two below `least`: what a loop computes in whole
/// vectors it computes so wherever it is cut. The elements after the last whole vector may have other bits than in
/// one.
constexpr int64_t RangeAlignment = 64;

/// Calls body(begin, end) for contiguous ranges that cover [0, count), of at least `least` each, on the compute
/// threads. Requires: cuts between vectors do not matter to the result; least > 0.
template <class Body>
auto ParallelRanges(int64_t count, int64_t least, const Body& body) -> void {
  const int64_t most = count / least;
  if (most <= 1 || ComputeThreads() == 1) {
    body(int64_t{0}, count);
    return;
  }
  const int64_t parts = std::min(most, RangesPerThread * ComputeThreads());
  const auto alignment = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(least, RangeAlignment))));
  const auto begin_of = [&](int64_t part) {
    return part == parts ? count : count * part / parts / alignment * alignment;
  };
  ParallelTasks(parts, parts, [&](int64_t, Tasks& tasks) {
    for (int64_t part = tasks.Next(); part >= 0; part = tasks.Next()) {
      body(begin_of(part), begin_of(part + 1));
    }
  });
}

}  // namespace shardc
