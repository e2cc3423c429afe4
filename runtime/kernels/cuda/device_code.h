// What kernels of the CUDA family are written in: elements and vectors of them, sums and other reductions in a fixed
// order, shared memory, launches.
//
// nvcc compiles a .cu file with this header alone. The host's compiler takes the same file after
// tests/support/device_code_emulated.h, which defines CUDA's own words.
//
// Kernels compute in f32 and round once, in Store. No float is added atomically, and the shape of a grid depends on the
// shape of operands alone, so the bits of a result depend on nothing else.
#pragma once

#ifdef __CUDACC__
#include "runtime/device/cuda/cuda_error.h"

/// Declares shared memory of a type: SHARED(sums, float[32]).
#define SHARED(name, ...) __shared__ std::type_identity_t<__VA_ARGS__> name
/// Has the loop that follows unrolled, so that arrays which it indexes stay in registers.
#define UNROLL _Pragma("unroll")
/// Has the loop that follows left as it is: one that seldom runs is not to take registers from the others.
#define ROLLED _Pragma("unroll 1")
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "compiler/base/bfloat16.h"
#include "compiler/base/error_or.h"
#include "runtime/device/cuda/stream.h"

namespace shardc::cuda {

// ---- Where a thread is.

constexpr int WarpSize = 32;

__device__ __forceinline__ auto Thread() -> int { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ auto NumThreads() -> int { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ auto Lane() -> int { return Thread() % WarpSize; }
__device__ __forceinline__ auto Warp() -> int { return Thread() / WarpSize; }
__device__ __forceinline__ auto NumWarps() -> int { return NumThreads() / WarpSize; }
__device__ __forceinline__ auto BlockX() -> int64_t { return static_cast<int64_t>(blockIdx.x); }
__device__ __forceinline__ auto BlockY() -> int64_t { return static_cast<int64_t>(blockIdx.y); }

// ---- Elements.

__device__ __forceinline__ auto ToFloat(float element) -> float { return element; }
/// Exact.
__device__ __forceinline__ auto ToFloat(BFloat16 element) -> float {
  return __uint_as_float(static_cast<uint32_t>(element.bits) << 16U);
}

#ifdef __CUDA_ARCH__
/// Two bf16 in a word, the first in its low half.
__device__ __forceinline__ auto RoundedPair(float low, float high) -> uint32_t {
  uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

/// Rounds to nearest, ties to even; a NaN stays one.
template <class T>
__device__ __forceinline__ auto FromFloat(float value) -> T {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    BFloat16 element{};
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(element.bits) : "f"(value));
#else
    shardc::Store(element, value);
#endif
    return element;
  }
}

template <class T>
__device__ __forceinline__ auto Load(const T* from) -> float {
  return ToFloat(*from);
}
template <class T>
__device__ __forceinline__ auto Store(T* to, float value) -> void {
  *to = FromFloat<T>(value);
}

// ---- Vectors of N elements, read and written 16 bytes at a time.

/// N elements as they lie in memory. Keeps bf16 in half the registers that its floats take.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T elements[N];
};

template <int N>
struct Floats {
  float at[N];
};

/// Elements of the widest of these types that fit 16 bytes.
template <class... T>
constexpr int PackSize = 16 / static_cast<int>(std::max({sizeof(T)...}));

/// Requires: `from` is a multiple of N elements, up to 16 bytes.
template <int N, class T>
__device__ __forceinline__ auto LoadPack(const T* from) -> Pack<T, N> {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
__device__ __forceinline__ auto StorePack(T* to, const Pack<T, N>& pack) -> void {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

template <class T, int N>
__device__ __forceinline__ auto ToFloats(const Pack<T, N>& pack) -> Floats<N> {
  Floats<N> floats;
  UNROLL
  for (int i = 0; i < N; ++i) {
    floats.at[i] = ToFloat(pack.elements[i]);
  }
  return floats;
}

template <class T, int N>
__device__ __forceinline__ auto ToPack(const Floats<N>& floats) -> Pack<T, N> {
  Pack<T, N> pack;
#ifdef __CUDA_ARCH__
  constexpr bool ByPairs = std::is_same_v<T, BFloat16> && N % 2 == 0;
#else
  constexpr bool ByPairs = false;
#endif
  if constexpr (ByPairs) {
    uint32_t pairs[N / 2];
    UNROLL
    for (int i = 0; i < N / 2; ++i) {
      pairs[i] = RoundedPair(floats.at[2 * i], floats.at[2 * i + 1]);
    }
    memcpy(&pack, pairs, sizeof(pack));
  } else {
    UNROLL
    for (int i = 0; i < N; ++i) {
      pack.elements[i] = FromFloat<T>(floats.at[i]);
    }
  }
  return pack;
}

template <int N, class T>
__device__ __forceinline__ auto LoadFloats(const T* from) -> Floats<N> {
  return ToFloats(LoadPack<N>(from));
}
template <int N, class T>
__device__ __forceinline__ auto StoreFloats(T* to, const Floats<N>& floats) -> void {
  StorePack<N>(to, ToPack<T>(floats));
}

/// Returns true if vectors of N elements may be read there.
template <int N, class T>
auto IsAligned(const T* first) -> bool {
  return reinterpret_cast<uintptr_t>(first) % alignof(Pack<T, N>) == 0;
}

// ---- Reductions. All threads that take part get the result, which has the same bits in all of them: a combination is
// that of a lower thread with a higher one, pairs first.

/// Exchanges a value with the lane whose number differs in the bits of `mask`.
template <class T>
__device__ __forceinline__ auto ExchangeLanes(T value, int mask) -> T {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0 && std::is_trivially_copyable_v<T>);
#ifdef __CUDACC__
  uint32_t words[sizeof(T) / sizeof(uint32_t)];
  memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) {
    word = __shfl_xor_sync(~0U, word, mask);
  }
  memcpy(&value, words, sizeof(T));
#else
  value = __shfl_xor_sync(~0U, value, mask);
#endif
  return value;
}

/// Reduces over each `width` lanes, a power of two.
template <class T, class Combine>
__device__ __forceinline__ auto WarpReduce(T value, const Combine& combine, int width = WarpSize) -> T {
  UNROLL
  for (int mask = 1; mask < WarpSize; mask *= 2) {
    if (mask < width) {
      const T other = ExchangeLanes(value, mask);
      value = (Lane() & mask) == 0 ? combine(value, other) : combine(other, value);
    }
  }
  return value;
}

/// Reduces over the block, warps in pairs like lanes. `none` is neutral: combine(none, x) is x.
template <class T, class Combine>
__device__ __forceinline__ auto BlockReduce(T value, T none, const Combine& combine) -> T {
  SHARED(of_warps, T[WarpSize]);
  value = WarpReduce(value, combine);
  // Of the sum before this one all have read.
  __syncthreads();
  if (Lane() == 0) {
    of_warps[Warp()] = value;
  }
  __syncthreads();
  return WarpReduce(Lane() < NumWarps() ? of_warps[Lane()] : none, combine);
}

struct Plus {
  template <class T>
  __device__ __forceinline__ auto operator()(T a, T b) const -> T {
    return a + b;
  }
};
struct Greater {
  template <class T>
  __device__ __forceinline__ auto operator()(T a, T b) const -> T {
    return a < b ? b : a;
  }
};

template <class T>
__device__ __forceinline__ auto WarpSum(T value, int width = WarpSize) -> T {
  return WarpReduce(value, Plus{}, width);
}
/// Requires: all threads of the block call it.
template <class T>
__device__ __forceinline__ auto BlockSum(T value) -> T {
  return BlockReduce(value, T{0}, Plus{});
}

// ---- Launches.

struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
};

/// Bytes of DynamicShared at most. The 227 KiB that a block of sm_90 may have leave 11 KiB for what a kernel declares.
/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr int64_t MostDynamicShared = int64_t{216} << 10;

struct LaunchShape {
  Grid grid;
  /// A multiple of 32.
  int threads = 256;
  /// Bytes that DynamicShared has.
  int64_t shared_bytes = 0;
};

/// Blocks of `size` that hold `count`.
constexpr auto BlocksFor(int64_t count, int64_t size) -> int64_t { return (count + size - 1) / size; }

using DeviceStream = CUstream_st*;

#ifdef __CUDACC__
/// Shared memory whose size the launch tells.
template <class T>
__device__ __forceinline__ auto DynamicShared() -> T* {
  extern __shared__ __align__(16) unsigned char shardc_dynamic_shared[];
  return reinterpret_cast<T*>(shardc_dynamic_shared);
}
#else
template <class T>
auto DynamicShared() -> T* {
  return reinterpret_cast<T*>(emulated::block->dynamic.data());
}
#endif

/// Starts a kernel on a stream; a grid of no blocks is done at once. Errors: Environment if the device refuses it.
template <class... Parameters, class... Arguments>
auto Launch(DeviceStream stream, const LaunchShape& shape, void (*kernel)(Parameters...), Arguments... arguments)
    -> Status {
  const Grid& grid = shape.grid;
  CHECK(shape.threads % WarpSize == 0 && shape.threads > 0 && shape.threads <= 1024, "a block of {} threads",
        shape.threads);
  CHECK(grid.x <= INT32_MAX && grid.y <= UINT16_MAX && grid.z <= UINT16_MAX, "a grid of {} x {} x {} blocks", grid.x,
        grid.y, grid.z);
  CHECK(shape.shared_bytes <= MostDynamicShared, "{} B of shared memory", shape.shared_bytes);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return Success{};
  }
  const dim3 blocks{static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)};
#ifdef __CUDACC__
  constexpr int64_t AllowedUnasked = int64_t{48} << 10;
  cudaError_t error = cudaSuccess;
  if (shape.shared_bytes > AllowedUnasked) {
    // Launches of other threads and of graphs, which may need more than this one, find the same bound.
    error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(MostDynamicShared));
  }
  if (error == cudaSuccess) {
    kernel<<<blocks, shape.threads, static_cast<size_t>(shape.shared_bytes), stream>>>(
        static_cast<Parameters>(arguments)...);
    error = cudaPeekAtLastError();
  }
  return CudaStatus(error, "launching a kernel");
#else
  static_cast<void>(stream);
  emulated::RunGrid(blocks, static_cast<unsigned>(shape.threads), shape.shared_bytes,
                    [&] { kernel(static_cast<Parameters>(arguments)...); });
  return Success{};
#endif
}

}  // namespace shardc::cuda
