// Sums over the rows of a matrix, column by column, in two kernels: blocks sum a fixed number of ranges of rows into
// scratch, each in f32; then the ranges are summed in order, in f64. partials_RH: one row for each range.
#pragma once

#include "compiler/ops/op_support.h"
#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

/// A block has 32 vectors of columns, and this many rows at a time.
constexpr int RowsAtOnce = 8;
constexpr int ColumnSumThreads = WarpSize * RowsAtOnce;

/// `term`: at(row, column) is a vector of N terms. Sums the columns from `first` on.
template <int N, class Term>
static __global__ void __launch_bounds__(ColumnSumThreads)
    ColumnSumsKernel(Term term, int64_t rows, int first, int columns, float* partials_RH) {
  SHARED(sums, float[RowsAtOnce][WarpSize * N]);
  const int tile = first + static_cast<int>(BlockY()) * WarpSize * N;
  const int column = tile + Lane() * N;
  Floats<N> sum = {};
  if (column < columns) {
    for (int64_t row = BlockX() * RowsAtOnce + Warp(); row < rows;
         row += static_cast<int64_t>(gridDim.x) * RowsAtOnce) {
      const Floats<N> terms = term.template At<N>(row, column);
      UNROLL
      for (int i = 0; i < N; ++i) {
        sum.at[i] += terms.at[i];
      }
    }
  }
  UNROLL
  for (int i = 0; i < N; ++i) {
    sums[Warp()][Lane() * N + i] = sum.at[i];
  }
  __syncthreads();
  for (int i = Thread(); i < WarpSize * N && tile + i < columns; i += ColumnSumThreads) {
    double total = 0;
    for (int warp = 0; warp < RowsAtOnce; ++warp) {
      total += static_cast<double>(sums[warp][i]);
    }
    partials_RH[BlockX() * columns + tile + i] = static_cast<float>(total);
  }
}

/// Returns how many ranges the rows are cut into, `at_once` of which a block takes.
inline auto RangesFor(int64_t rows, int64_t at_once) -> int64_t {
  return std::min(RangesOfRows, BlocksFor(rows, at_once));
}

/// A column of the block takes an eighth of the ranges.
static __global__ void __launch_bounds__(ColumnSumThreads)
    SumRangesKernel(const float* partials_RH, int ranges, int columns, bool adds, float* sums_H) {
  SHARED(parts, double[RowsAtOnce][WarpSize]);
  const int64_t column = BlockX() * WarpSize + Lane();
  double part = 0;
  if (column < columns) {
    const int share = (ranges + RowsAtOnce - 1) / RowsAtOnce;
    const int end = (Warp() + 1) * share < ranges ? (Warp() + 1) * share : ranges;
    for (int range = Warp() * share; range < end; ++range) {
      part += static_cast<double>(partials_RH[static_cast<int64_t>(range) * columns + column]);
    }
  }
  parts[Warp()][Lane()] = part;
  __syncthreads();
  if (Warp() == 0 && column < columns) {
    double total = 0;
    for (int warp = 0; warp < RowsAtOnce; ++warp) {
      total += parts[warp][Lane()];
    }
    sums_H[column] = (adds ? sums_H[column] : 0.0F) + static_cast<float>(total);
  }
}

inline auto LaunchSumRanges(DeviceStream stream, const float* partials_RH, int64_t ranges, int columns, bool adds,
                            float* sums_H) -> Status {
  return Launch(stream, {.grid = {BlocksFor(columns, WarpSize)}, .threads = ColumnSumThreads}, SumRangesKernel,
                partials_RH, ranges, columns, adds, sums_H);
}

}  // namespace shardc::cuda
