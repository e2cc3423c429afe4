// Rows of a matrix, each by a group of threads: 1 to 512 of them, a power of two, so that narrow rows share a warp and
// wide ones have warps of their own. A thread keeps 16 elements of its row in registers, or 8 of a row that has no
// whole vectors; of a wider row it reads the rest again.
//
// All threads of a block stay to its end, those of rows past the last one with no columns: they meet the others at
// barriers.
#pragma once

#include <bit>

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

constexpr int MostRowThreads = 512;
/// Vectors of N elements that a thread keeps of a row.
template <int N>
constexpr int KeptVectors = N == 1 ? 8 : 16 / N;
/// Columns that the threads of a row keep at most.
template <int N>
constexpr int MostKept = MostRowThreads* KeptVectors<N>* N;

/// How a matrix is shared among threads.
struct RowShape {
  int64_t rows = 0;
  int columns = 0;
  /// Threads of a row.
  int width = 1;
  int threads = 256;
  /// Columns of a row that its threads keep, if it has them.
  int kept = 0;

  auto RowsPerBlock() const -> int { return threads / width; }
  auto Blocks() const -> int64_t { return BlocksFor(rows, RowsPerBlock()); }
};

template <int N>
auto ShapeRows(int64_t rows, int64_t columns) -> RowShape {
  CHECK(columns < (int64_t{1} << 30), "rows of {} elements", columns);
  constexpr int PerThread = KeptVectors<N> * N;
  const int64_t wanted = std::clamp(BlocksFor(columns, PerThread), int64_t{1}, int64_t{MostRowThreads});
  const int width = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(wanted)));
  return {.rows = rows,
          .columns = static_cast<int>(columns),
          .width = width,
          .threads = std::max(256, width),
          .kept = width * PerThread};
}

/// A thread's place in its row.
struct RowPlace {
  /// In the block.
  int group;
  int thread;
  int width;

  __device__ __forceinline__ explicit RowPlace(int width_of_row)
      : group(Thread() / width_of_row), thread(Thread() % width_of_row), width(width_of_row) {}

  /// Column of the thread's vector k.
  template <int N>
  __device__ __forceinline__ auto Column(int k) const -> int {
    return (k * width + thread) * N;
  }
};

/// Calls f(k, column) for each of the thread's vectors that lie in registers.
template <int N, class F>
__device__ __forceinline__ auto ForKept(const RowPlace& place, int columns, const F& f) -> void {
  UNROLL
  for (int k = 0; k < KeptVectors<N>; ++k) {
    const int column = place.Column<N>(k);
    if (column < columns) {
      f(k, column);
    }
  }
}

/// Calls f(column) for each of the thread's vectors that do not.
template <int N, class F>
__device__ __forceinline__ auto ForRest(const RowPlace& place, int columns, const F& f) -> void {
  ROLLED
  for (int column = place.Column<N>(KeptVectors<N>); column < columns; column += place.width * N) {
    f(column);
  }
}

/// The vectors of a row that a thread keeps.
template <int N, class T>
struct KeptRow {
  Pack<T, N> packs[KeptVectors<N>] = {};

  /// load(column): the vector there.
  template <class Load>
  __device__ __forceinline__ KeptRow(const RowPlace& place, int columns, const Load& load) {
    ForKept<N>(place, columns, [&](int k, int column) { packs[k] = load(column); });
  }
  __device__ __forceinline__ KeptRow(const T* row, const RowPlace& place, int columns)
      : KeptRow(place, columns, [=](int column) { return LoadPack<N>(row + column); }) {}
  __device__ __forceinline__ auto At(int k) const -> Floats<N> { return ToFloats(packs[k]); }
};

/// Numbers that are summed together.
template <int Count>
struct Sums {
  float at[Count] = {};

  __device__ __forceinline__ auto operator+(const Sums& other) const -> Sums {
    Sums sum;
    UNROLL
    for (int i = 0; i < Count; ++i) {
      sum.at[i] = at[i] + other.at[i];
    }
    return sum;
  }
};

/// Sums over the threads of each row; all get the sum of theirs. `turn`: 0 and 1 in turn, so that one barrier is
/// enough. Requires: all threads of the block call it.
template <int Count>
__device__ __forceinline__ auto RowSum(Sums<Count> value, const RowPlace& place, int turn) -> Sums<Count> {
  value = WarpSum(value, place.width);
  if (place.width > WarpSize) {
    SHARED(of_warps, Pack<float, Count>[2][MostRowThreads / WarpSize]);
    if (Lane() == 0) {
      UNROLL
      for (int i = 0; i < Count; ++i) {
        of_warps[turn][Warp()].elements[i] = value.at[i];
      }
    }
    __syncthreads();
    const int warps = place.width / WarpSize;
    const int first = place.group * warps;
    value = {};
    if (Lane() < warps) {
      UNROLL
      for (int i = 0; i < Count; ++i) {
        value.at[i] = of_warps[turn][first + Lane()].elements[i];
      }
    }
    value = WarpSum(value);
  }
  return value;
}

}  // namespace shardc::cuda
