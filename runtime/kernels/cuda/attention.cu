// attention on CUDA cores: causal, in tiles, with an online softmax, in f32 whatever the type of its operands. A block
// owns 32 queries of one head and walks the tiles of keys from the document of its first query to the diagonal: scores
// = q k^T; each row keeps its running maximum m and sum l, its output so far being corrected by e^(m_old - m_new) where
// the maximum grew. At the end y is the output divided by l, and lse = m + log l. Source: Dao 2023, "FlashAttention-2",
// alg. 1.
#include "runtime/kernels/cuda/attention_tile.h"

namespace shardc::cuda {

template <class T>
__global__ void __launch_bounds__(AttentionThreads)
    AttendToKeys(HeadSizes sizes, const T* q, const T* k, const T* v, const int32_t* starts_SB, T* y, float* lse) {
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
  const BlockStarts starts = StartsOf(sizes, starts_SB, batch);
  const int64_t start = starts.At(query);
  const auto is_seen = [=](int64_t key) { return key >= start && key <= query; };
  for (int64_t column = 0; column < sizes.head_dim; column += ResultWidth) {
    Results outputs{};
    float maximum = -INFINITY;
    float sum = 0;
    for (int64_t key = starts.FirstKey(first); key <= first; key += TileSize) {
      Columns scores;
      MultiplyRows(queries, first, keys, key, tile_a, tile_b, scores);
      float greatest = -INFINITY;
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        scores[i] *= sizes.scale;
        greatest = is_seen(key + TileColumn(i)) ? fmaxf(greatest, scores[i]) : greatest;
      }
      greatest = fmaxf(maximum, WarpReduce(greatest, Greater{}, ThreadsOfRow));
      float of_tile = 0;
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        const float probability = is_seen(key + TileColumn(i)) ? expf(scores[i] - greatest) : 0.0F;
        probabilities[TileRow()][TileColumn(i)] = probability;
        of_tile += probability;
      }
      // Both are minus infinity until the row sees a key.
      const float correction = maximum == greatest ? 1.0F : expf(maximum - greatest);
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
            v = Resolve<const T>(binder, op.v), starts = ResolveIfSet<const int32_t>(binder, op.starts),
            y = Resolve<T>(binder, op.y), lse = Resolve<float>(binder, op.lse),
            sizes = HeadSizesOf(op, binder.plan())](const Moment& moment) -> Status {
      return Launch(
          stream,
          {.grid = {BlocksFor(sizes.sequence, TileSize), sizes.heads, sizes.batch}, .threads = AttentionThreads},
          AttendToKeys<T>, sizes, q.At(moment), k.At(moment), v.At(moment), starts.At(moment), y.At(moment),
          lse.At(moment));
    };
  });
}

}  // namespace shardc::cuda
