// What attention and attention_backward share on CUDA cores: tiles of 32 x 32 in shared memory, and products of them.
//
// A block works on 32 rows, queries or keys, of one head. Eight threads share a row, and each has every eighth of the
// 32 columns of a tile: four. Rows and columns past the end are zero in a tile. Sums are in f32 and in a fixed order.
#pragma once

#include <cmath>

#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

constexpr int TileSize = 32;
constexpr int AttentionThreads = 256;
constexpr int ThreadsOfRow = AttentionThreads / TileSize;
constexpr int ColumnsOfThread = TileSize / ThreadsOfRow;
/// Tiles of a row of results that a thread keeps in registers. Wider heads are done in several turns.
constexpr int ResultTiles = 4;
constexpr int ResultWidth = ResultTiles * TileSize;

/// A column more than it needs, so that the threads of a warp meet in no bank of memory.
using Tile = float[TileSize][TileSize + 1];
using Columns = float[ColumnsOfThread];
using Results = float[ResultTiles][ColumnsOfThread];

__device__ __forceinline__ auto TileRow() -> int { return Thread() / ThreadsOfRow; }
__device__ __forceinline__ auto TileColumn(int i) -> int { return Thread() % ThreadsOfRow + i * ThreadsOfRow; }

/// q is [S, B, A*D], k and v are [S, B, K*D].
struct HeadSizes {
  int64_t batch;
  int64_t heads;
  int64_t kv_heads;
  int64_t sequence;
  int64_t head_dim;
  float scale;
};

/// One head of a matrix of T: the rows of its positions lie `stride` apart.
template <class T>
struct Head {
  T* first;
  int64_t stride;
  int64_t sequence;
  int64_t head_dim;
};

/// `heads`: of the matrix.
template <class T>
__device__ __forceinline__ auto HeadOf(const HeadSizes& sizes, T* matrix, int64_t heads, int64_t batch, int64_t head)
    -> Head<T> {
  return {matrix + (batch * heads + head) * sizes.head_dim, sizes.batch * heads * sizes.head_dim, sizes.sequence,
          sizes.head_dim};
}

/// The 32 x 32 elements of a head from a position and a column on. Requires: all threads of the block call it, and a
/// barrier before what they read.
template <class T>
__device__ __forceinline__ auto LoadTile(const Head<const T>& head, int64_t position, int64_t column, Tile& tile)
    -> void {
  for (int i = Thread(); i < TileSize * TileSize; i += AttentionThreads) {
    const int row = i / TileSize;
    const int of_row = i % TileSize;
    const bool is_there = position + row < head.sequence && column + of_row < head.head_dim;
    tile[row][of_row] = is_there ? Load(head.first + (position + row) * head.stride + column + of_row) : 0.0F;
  }
}

/// products[i] = the inner product of the thread's row of a, from position `of_a` on, and of row TileColumn(i) of b,
/// from position `of_b` on. All threads have read both tiles when it returns.
template <class T>
__device__ __forceinline__ auto MultiplyRows(const Head<const T>& a, int64_t of_a, const Head<const T>& b, int64_t of_b,
                                             Tile& tile_a, Tile& tile_b, Columns& products) -> void {
  UNROLL
  for (float& product : products) {
    product = 0;
  }
  for (int64_t column = 0; column < a.head_dim; column += TileSize) {
    LoadTile(a, of_a, column, tile_a);
    LoadTile(b, of_b, column, tile_b);
    __syncthreads();
    for (int k = 0; k < TileSize; ++k) {
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        products[i] += tile_a[TileRow()][k] * tile_b[TileColumn(i)][k];
      }
    }
    __syncthreads();
  }
}

/// results += weights times the rows of `head` from a position on, of the columns from `first_column` on. All threads
/// have read the weights and the tile when it returns. Requires: no thread reads `tile` any more.
template <class T>
__device__ __forceinline__ auto AddWeightedRows(const Tile& weights, const Head<const T>& head, int64_t position,
                                                int64_t first_column, Tile& tile, Results& results) -> void {
  UNROLL
  for (int t = 0; t < ResultTiles; ++t) {
    const int64_t column = first_column + t * TileSize;
    if (column < head.head_dim) {
      LoadTile(head, position, column, tile);
      __syncthreads();
      for (int k = 0; k < TileSize; ++k) {
        UNROLL
        for (int i = 0; i < ColumnsOfThread; ++i) {
          results[t][i] += weights[TileRow()][k] * tile[k][TileColumn(i)];
        }
      }
      __syncthreads();
    }
  }
}

/// Writes the thread's results times `factor` into its row of `head`, if there is such a row.
template <class T>
__device__ __forceinline__ auto StoreResults(const Results& results, float factor, const Head<T>& head,
                                             int64_t position, int64_t first_column) -> void {
  UNROLL
  for (int t = 0; t < ResultTiles; ++t) {
    UNROLL
    for (int i = 0; i < ColumnsOfThread; ++i) {
      const int64_t column = first_column + t * TileSize + TileColumn(i);
      if (position < head.sequence && column < head.head_dim) {
        Store(head.first + position * head.stride + column, results[t][i] * factor);
      }
    }
  }
}

/// Borders of the documents of one sequence; without starts it is one document.
struct BlockStarts {
  /// Null if the op has none.
  const int32_t* starts_SB;
  int64_t stride;
  int64_t sequence;

  /// Returns 0 past the end.
  __device__ __forceinline__ auto At(int64_t position) const -> int64_t {
    return starts_SB == nullptr || position >= sequence ? 0 : starts_SB[position * stride];
  }
  /// Returns the first key of the tiles that the queries from `query` on see some of.
  __device__ __forceinline__ auto FirstKey(int64_t query) const -> int64_t { return At(query) / TileSize * TileSize; }
};

__device__ __forceinline__ auto StartsOf(const HeadSizes& sizes, const int32_t* starts_SB, int64_t batch)
    -> BlockStarts {
  return {starts_SB == nullptr ? nullptr : starts_SB + batch, sizes.batch, sizes.sequence};
}

/// The inner product of a row of a and one of b, at a position past the end 0, to the eight threads of a row.
template <class T>
__device__ __forceinline__ auto MultiplyRow(const Head<const T>& a, const Head<const T>& b, int64_t position) -> float {
  float product = 0;
  for (int64_t column = TileColumn(0); position < a.sequence && column < a.head_dim; column += ThreadsOfRow) {
    product += Load(a.first + position * a.stride + column) * Load(b.first + position * b.stride + column);
  }
  return WarpSum(product, ThreadsOfRow);
}

template <class Op>
auto HeadSizesOf(const Op& op, const Plan& plan) -> HeadSizes {
  const Dims& q = ShapeOf(plan, op.q);
  return {.batch = q[1],
          .heads = q[2] / op.head_dim,
          .kv_heads = ShapeOf(plan, op.k)[2] / op.head_dim,
          .sequence = q[0],
          .head_dim = op.head_dim,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(op.head_dim)))};
}

}  // namespace shardc::cuda
