#include "tests/run/allocation_counter.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

namespace shardc {
namespace {

struct Counters {
  std::atomic<int64_t> small_mallocs;
  std::atomic<int64_t> large_mallocs;
  std::atomic<int64_t> c10_allocations;
  std::atomic<int64_t> mappings;
};

// Plain data: the functions below run before any constructor.
thread_local bool counting = false;
thread_local AllocationCounts of_thread;
std::atomic<bool> counting_all = false;
Counters of_all;

[[maybe_unused]] auto CountMalloc(size_t bytes) -> void {
  const bool large = static_cast<int64_t>(bytes) >= LargeBytes;
  if (counting) {
    ++(large ? of_thread.large_mallocs : of_thread.small_mallocs);
  } else if (counting_all.load(std::memory_order_relaxed)) {
    ++(large ? of_all.large_mallocs : of_all.small_mallocs);
  }
}

[[maybe_unused]] auto CountMapping() -> void {
  if (counting) {
    ++of_thread.mappings;
  } else if (counting_all.load(std::memory_order_relaxed)) {
    ++of_all.mappings;
  }
}

/// In front of the allocator that LibTorch has.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}
  auto allocate(size_t bytes) -> c10::DataPtr override {
    if (counting) {
      ++of_thread.c10_allocations;
    } else if (counting_all.load(std::memory_order_relaxed)) {
      ++of_all.c10_allocations;
    }
    return inner_->allocate(bytes);
  }
  auto raw_deleter() const -> c10::DeleterFnPtr override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { inner_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* inner_;
};

auto InstallCountingAllocator() -> void {
  static CountingAllocator allocator(c10::GetCPUAllocator());
  constexpr uint8_t Priority = 255;
  static const bool once = [] {
    c10::SetCPUAllocator(&allocator, Priority);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
auto CanCountAllocations() -> bool { return false; }
#else
auto CanCountAllocations() -> bool { return true; }
#endif

auto StartCounting() -> void {
  InstallCountingAllocator();
  of_thread = {.counted = true};
  counting = true;
}

auto StartCountingAllThreads() -> void {
  InstallCountingAllocator();
  of_all.small_mallocs = of_all.large_mallocs = of_all.c10_allocations = of_all.mappings = 0;
  counting_all = true;
}

auto StopCounting() -> AllocationCounts {
  if (counting) {
    counting = false;
    return of_thread;
  }
  if (!counting_all.exchange(false)) {
    return {};
  }
  return {.counted = true,
          .small_mallocs = of_all.small_mallocs,
          .large_mallocs = of_all.large_mallocs,
          .c10_allocations = of_all.c10_allocations,
          .mappings = of_all.mappings};
}

}  // namespace shardc

#if !defined(__SANITIZE_ADDRESS__)
// Source: glibc's manual, "Replacing malloc"; __libc_* are glibc's own under names that stay.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

void* malloc(size_t bytes) noexcept {
  shardc::CountMalloc(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  shardc::CountMalloc(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) noexcept {
  shardc::CountMalloc(bytes);
  return __libc_realloc(block, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  shardc::CountMalloc(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
void free(void* block) noexcept { __libc_free(block); }

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  shardc::CountMapping();
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
int munmap(void* address, size_t bytes) noexcept {
  shardc::CountMapping();
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
}
#endif
