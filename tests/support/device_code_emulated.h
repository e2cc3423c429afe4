// The words of CUDA that kernels use, for the host's compiler: included before runtime/kernels/cuda/*.cu, it makes of
// each launch a loop over the blocks. The threads of a block are fibers, so barriers, shuffles and votes are switches
// between them.
//
// 1. Shared memory holds NaN when a block starts.
// 2. Warps run one after another, in ascending or descending order (warp_order.h), each up to the next barrier of the
//    block; so do the lanes of a warp, up to the next operation of the warp. A missing barrier shows as other bits.
// 3. A barrier that not all threads reach ends the process, also if the others have returned.
// 4. Memory past the end of an allocation of shared memory is guarded.
#pragma once

#ifdef __CUDACC__
#error "this header is for the host's compiler"
#endif

// Its functions are global ones, as in kernels.
#include <math.h>

#include <algorithm>
#include <bit>
#include <boost/context/fiber.hpp>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "tests/support/warp_order.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define UNROLL
#define ROLLED
#define SHARED(name, ...) auto& name = ::shardc::emulated::SharedOf<__VA_ARGS__>([] {})

struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

namespace shardc::emulated {

constexpr unsigned WarpSize = 32;

/// Why a thread does not go on.
struct Waiting {
  enum class For { Nothing, Warp, Block, Never } what = For::Nothing;
  /// The operation at which it waits.
  std::string_view at;
};

/// A value that a thread shows to its warp or block. Two in turn: a thread that goes on may show the next one before
/// the others have read this one.
struct Slot {
  alignas(16) std::byte bytes[2][16];
  unsigned turn = 0;
};

struct Thread {
  boost::context::fiber fiber;
  unsigned index = 0;
  Waiting waiting;
  Slot slot;
};

/// An allocation of shared memory, with guard bytes past its end.
class SharedMemory {
 public:
  /// Allocates shared memory. `tag`: the declaration that it belongs to.
  SharedMemory(const void* tag, size_t bytes)
      : tag_(tag), bytes_(bytes), memory_(std::make_unique<Line[]>(bytes / sizeof(Line) + 2)) {
    Paint();
  }
  auto tag() const -> const void* { return tag_; }
  auto bytes() const -> size_t { return bytes_; }
  auto data() -> std::byte* { return memory_[0].bytes; }
  auto Paint() -> void {
    std::memset(data(), 0xFF, bytes_);
    std::memset(data() + bytes_, 0xA5, sizeof(Line));
  }
  auto CheckGuard() -> void {
    const std::byte* const guard = data() + bytes_;
    CHECK(std::all_of(guard, guard + sizeof(Line), [](std::byte byte) { return byte == std::byte{0xA5}; }),
          "a kernel wrote past the end of {} B of shared memory", bytes_);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const void* tag_;
  size_t bytes_;
  std::unique_ptr<Line[]> memory_;
};

/// The block that runs now on this thread of the host.
struct Block {
  dim3 grid;
  dim3 index;
  dim3 size;
  boost::context::fiber scheduler;
  std::vector<Thread> threads;
  Thread* now = nullptr;
  std::vector<SharedMemory> shared;
  SharedMemory dynamic{nullptr, 0};

  auto Warp(const Thread& thread) -> Thread* { return &threads[thread.index / WarpSize * WarpSize]; }
};
inline thread_local Block* block = nullptr;

/// Returns memory of a fiber, which is kept from launch to launch.
inline auto StackOf(unsigned thread) -> boost::context::preallocated {
  constexpr size_t Bytes = size_t{64} << 10;
  static thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
  while (stacks.size() <= thread) {
    stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(Bytes));
  }
  boost::context::stack_context context;
  context.size = Bytes;
  context.sp = stacks[thread].get() + Bytes;
  return {context.sp, context.size, context};
}
struct KeptStacks {
  auto deallocate(boost::context::stack_context& /*context*/) -> void {}
};

/// Lets the other threads run until all have come.
inline auto Wait(Waiting::For what, std::string_view at) -> void {
  block->now->waiting = {what, at};
  block->scheduler = std::move(block->scheduler).resume();
}

/// Shows `value` to the warp, and returns when all of its threads have shown theirs.
template <class T>
auto Show(const T& value, std::string_view at) -> void {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
  Slot& slot = block->now->slot;
  slot.turn ^= 1U;
  std::memcpy(slot.bytes[slot.turn], &value, sizeof(T));
  Wait(Waiting::For::Warp, at);
}

/// Returns the value that `thread` has shown at the operation that this thread has left.
template <class T>
auto ShownBy(const Thread& thread) -> T {
  T value;
  std::memcpy(&value, thread.slot.bytes[block->now->slot.turn], sizeof(T));
  return value;
}

template <class T>
auto Shuffle(unsigned mask, T value, unsigned lane, std::string_view at) -> T {
  CHECK(mask == ~0U, "{} of some lanes only", at);
  Show(value, at);
  return lane < WarpSize ? ShownBy<T>(block->Warp(*block->now)[lane]) : value;
}

inline auto Ballot(unsigned mask, bool value, std::string_view at) -> unsigned {
  CHECK(mask == ~0U, "{} of some lanes only", at);
  Show(value, at);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < WarpSize; ++lane) {
    votes |= static_cast<unsigned>(ShownBy<bool>(block->Warp(*block->now)[lane])) << lane;
  }
  return votes;
}

/// Returns the memory of a SHARED: one allocation for each declaration and block.
template <class T, class Declaration>
auto SharedOf(Declaration /*declaration*/) -> T& {
  static constexpr char Tag = 0;
  for (SharedMemory& memory : block->shared) {
    if (memory.tag() == &Tag) {
      return *reinterpret_cast<T*>(memory.data());
    }
  }
  block->shared.emplace_back(&Tag, sizeof(T));
  size_t bytes = 0;
  for (const SharedMemory& memory : block->shared) {
    bytes += memory.bytes();
  }
  CHECK(bytes <= size_t{48} << 10, "a kernel declares {} B of shared memory", bytes);
  return *reinterpret_cast<T*>(block->shared.back().data());
}

/// Runs a warp until all its threads wait for the block or have returned.
inline auto RunWarp(Thread* warp, bool descending) -> void {
  using enum Waiting::For;
  for (;;) {
    for (unsigned i = 0; i < WarpSize; ++i) {
      Thread& thread = warp[descending ? WarpSize - 1 - i : i];
      if (thread.waiting.what == Nothing) {
        block->now = &thread;
        thread.fiber = std::move(thread.fiber).resume();
      }
    }
    const auto at_warp = [](const Thread& thread) { return thread.waiting.what == Warp; };
    const Thread* const first = std::find_if(warp, warp + WarpSize, at_warp);
    if (first == warp + WarpSize) {
      return;
    }
    const std::string_view at = first->waiting.at;
    for (Thread* thread = warp; thread != warp + WarpSize; ++thread) {
      CHECK(at_warp(*thread) && thread->waiting.at == at, "thread {} waits at {}, thread {} {} {}", first->index, at,
            thread->index, thread->waiting.what == Never ? "has returned" : "waits at", thread->waiting.at);
      thread->waiting = {};
    }
  }
}

template <class Body>
auto RunBlock(const Body& body) -> void {
  using enum Waiting::For;
  const bool descending = warp_order == WarpOrder::Descending;
  std::vector<Thread>& threads = block->threads;
  for (Thread& thread : threads) {
    thread.waiting = {};
    thread.slot = {};
    thread.fiber = boost::context::fiber(std::allocator_arg, StackOf(thread.index), KeptStacks{},
                                         [&body, &thread](boost::context::fiber&& scheduler) {
                                           block->scheduler = std::move(scheduler);
                                           body();
                                           thread.waiting = {Never, ""};
                                           return std::move(block->scheduler);
                                         });
  }
  const size_t num_warps = threads.size() / WarpSize;
  for (;;) {
    for (size_t i = 0; i < num_warps; ++i) {
      RunWarp(&threads[(descending ? num_warps - 1 - i : i) * WarpSize], descending);
    }
    const auto at_block = [](const Thread& thread) { return thread.waiting.what == Block; };
    const auto first = std::ranges::find_if(threads, at_block);
    if (first == threads.end()) {
      return;
    }
    const std::string_view at = first->waiting.at;
    for (Thread& thread : threads) {
      CHECK(at_block(thread) && thread.waiting.at == at, "thread {} waits at {}, thread {} {} {}", first->index, at,
            thread.index, thread.waiting.what == Never ? "has returned" : "waits at", thread.waiting.at);
    }
    for (Thread& thread : threads) {
      thread.waiting = {};
    }
  }
}

/// Runs body() in each thread of each block.
template <class Body>
auto RunGrid(dim3 grid, unsigned num_threads, int64_t dynamic_bytes, const Body& body) -> void {
  emulated::Block blocks{.grid = grid, .size = {num_threads, 1, 1}};
  blocks.dynamic = SharedMemory(nullptr, static_cast<size_t>(dynamic_bytes));
  blocks.threads.resize(num_threads);
  for (unsigned i = 0; i < num_threads; ++i) {
    blocks.threads[i].index = i;
  }
  // Declarations keep their addresses.
  blocks.shared.reserve(64);
  emulated::Block* const outer = std::exchange(block, &blocks);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blocks.index = {x, y, z};
        RunBlock(body);
        for (SharedMemory& memory : blocks.shared) {
          memory.CheckGuard();
          memory.Paint();
        }
        blocks.dynamic.CheckGuard();
        blocks.dynamic.Paint();
      }
    }
  }
  block = outer;
}

}  // namespace shardc::emulated

#define threadIdx (dim3{::shardc::emulated::block->now->index, 0, 0})
#define blockIdx (::shardc::emulated::block->index)
#define blockDim (::shardc::emulated::block->size)
#define gridDim (::shardc::emulated::block->grid)

// Barriers, votes and shuffles.
#define __syncthreads() ::shardc::emulated::Wait(::shardc::emulated::Waiting::For::Block, "__syncthreads")
template <class T>
auto __shfl_sync(unsigned mask, T value, int lane) -> T {
  return shardc::emulated::Shuffle(mask, value, static_cast<unsigned>(lane) % 32U, "__shfl_sync");
}
template <class T>
auto __shfl_xor_sync(unsigned mask, T value, int lanes) -> T {
  return shardc::emulated::Shuffle(mask, value, threadIdx.x % 32U ^ static_cast<unsigned>(lanes), "__shfl_xor_sync");
}
inline auto __ballot_sync(unsigned mask, int value) -> unsigned {
  return shardc::emulated::Ballot(mask, value != 0, "__ballot_sync");
}

// Atomics are for integers: those of floats would make bits depend on the order of threads.
template <std::integral T>
auto atomicAdd(T* at, T value) -> T {
  return std::exchange(*at, static_cast<T>(*at + value));
}
template <std::integral T>
auto atomicMin(T* at, T value) -> T {
  return std::exchange(*at, std::min(*at, value));
}

// Arithmetic.
inline auto __fadd_rn(float a, float b) -> float { return a + b; }
inline auto __dadd_rn(double a, double b) -> double { return a + b; }
inline auto __uint_as_float(unsigned a) -> float { return std::bit_cast<float>(a); }
inline auto __ffs(int a) -> int { return a == 0 ? 0 : std::countr_zero(static_cast<unsigned>(a)) + 1; }
