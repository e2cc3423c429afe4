// Counts what a thread asks of the heap, of LibTorch's CPU allocator and of mmap: the functions are defined by the test
// program itself, so that those of the C library are out of sight to every library in it.
#pragma once

#include <cstdint>

namespace shardc {

struct AllocationCounts {
  /// False where nothing was started.
  bool counted = false;
  /// malloc and its kin, by the bytes asked for.
  int64_t small_mallocs = 0;
  int64_t large_mallocs = 0;
  /// c10::GetCPUAllocator().
  int64_t c10_allocations = 0;
  /// mmap, munmap, mremap, brk, sbrk, called by anything but the C library itself.
  int64_t mappings = 0;
};

/// A malloc of so many bytes is large.
constexpr int64_t LargeBytes = int64_t{64} << 10;

/// False where a sanitizer has the allocator's functions.
auto CanCountAllocations() -> bool;

/// From here on the calling thread's calls count; or, by the second, every thread's.
auto StartCounting() -> void;
auto StartCountingAllThreads() -> void;
/// Ends both, and tells.
auto StopCounting() -> AllocationCounts;

}  // namespace shardc
