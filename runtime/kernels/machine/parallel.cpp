// The number of compute threads: one number for the process, set once before the first kernel runs.
#include "runtime/kernels/machine/parallel.h"

#include <atomic>

#include "runtime/kernels/kernel.h"

namespace shardc {

static std::atomic<int64_t> compute_threads{1};

auto ComputeThreads() -> int64_t { return compute_threads.load(std::memory_order_relaxed); }

auto SetComputeThreads(int64_t threads) -> void {
  CHECK(threads > 0, "{} compute threads", threads);
  compute_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace shardc
