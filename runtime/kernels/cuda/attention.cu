// attention on CUDA cores: causal, in tiles, with an online softmax, in f32 whatever the type of its operands. A block
// owns 32 queries of one head and walks the tiles of keys up to the diagonal: scores = q k^T; each row keeps its
// running maximum m and sum l, its output so far being corrected by e^(m_old - m_new) where the maximum grew. At the
// end y is the output divided by l, and lse = m + log l. Source: Dao 2023, "FlashAttention-2", alg. 1.
#include "runtime/kernels/cuda/attention_tile.h"

namespace shardc::cuda {

template <class T>
__global__ void __launch_bounds__(AttentionThreads)
    AttendToKeys(HeadSizes sizes, const T* q, const T* k, const T* v, T* y, float* lse) {
  SHARED(tile_a, Tile);
  SHARED(tile_b, Tile);
  SHARED(probabilities, Tile);
  const int64_t batch = blockIdx.z;
  const int64_t head = BlockY();
  const int64_t kv_head = head / (sizes.heads / sizes.kv_heads);
  const Head<const T> queries = HeadOf(sizes, q, sizes.heads, batch, head);
  const Head<const T> keys = HeadOf(sizes, k, sizes.kv_heads, batch, kv_head);
  const Head<const T> values = HeadOf(sizes, v, sizes.kv_heads, batch, kv_head);
  const int64_t first = BlockX() * TileSize;
  const int64_t query = first + TileRow();
  for (int64_t column = 0; column < sizes.head_dim; column += ResultWidth) {
    Results outputs{};
    float maximum = -INFINITY;
    float sum = 0;
    for (int64_t key = 0; key <= first; key += TileSize) {
      Columns scores;
      MultiplyRows(queries, first, keys, key, tile_a, tile_b, scores);
      float greatest = -INFINITY;
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        scores[i] *= sizes.scale;
        greatest = key + TileColumn(i) <= query ? fmaxf(greatest, scores[i]) : greatest;
      }
      greatest = fmaxf(maximum, WarpReduce(greatest, Greater{}, ThreadsOfRow));
      float of_tile = 0;
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        const float probability = key + TileColumn(i) <= query ? expf(scores[i] - greatest) : 0.0F;
        probabilities[TileRow()][TileColumn(i)] = probability;
        of_tile += probability;
      }
      const float correction = expf(maximum - greatest);
      sum = sum * correction + WarpSum(of_tile, ThreadsOfRow);
      maximum = greatest;
      UNROLL
      for (Columns& of_results : outputs) {
        UNROLL
        for (float& output : of_results) {
          output *= correction;
        }
      }
      AddWeightedRows(probabilities, values, key, column, tile_b, outputs);
    }
    StoreResults(outputs, 1.0F / sum, HeadOf(sizes, y, sizes.heads, batch, head), query, column);
    if (column == 0 && TileColumn(0) == 0 && query < sizes.sequence) {
      lse[(batch * sizes.heads + head) * sizes.sequence + query] = maximum + logf(sum);
    }
  }
}

auto Bind(const op::Attention& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.q).dtype, [&]<class T>() -> Kernel {
    return [stream = StreamOf(binder.queue()), q = Resolve<const T>(binder, op.q), k = Resolve<const T>(binder, op.k),
            v = Resolve<const T>(binder, op.v), y = Resolve<T>(binder, op.y), lse = Resolve<float>(binder, op.lse),
            sizes = HeadSizesOf(op, binder.plan())](const Moment& moment) -> Status {
      return Launch(
          stream,
          {.grid = {BlocksFor(sizes.sequence, TileSize), sizes.heads, sizes.batch}, .threads = AttentionThreads},
          AttendToKeys<T>, sizes, q.At(moment), k.At(moment), v.At(moment), y.At(moment), lse.At(moment));
    };
  });
}

}  // namespace shardc::cuda
