// attention_backward on CUDA cores, in f32 whatever the type of its operands: probabilities are computed again from
// lse, tile by tile. With p = e^(scale q k^T - lse) and delta = rowsum(dy * y): dv = p^T dy, ds = scale p (dy v^T -
// delta), dq = ds k, dk = ds^T q. In the first kernel a block owns dq of 32 queries of one head, in the second one dk
// and dv of 32 keys of one kv head, to which it adds the terms of the query heads in order. Neither walks tiles in
// which no query is of the document of a key. Source: Dao 2023, "FlashAttention-2", alg. 2.
#include "runtime/kernels/cuda/attention_tile.h"

namespace shardc::cuda {

template <class T>
struct AttentionGradients {
  const T* dy;
  const T* q;
  const T* k;
  const T* v;
  const T* y;
  const float* lse;
  const int32_t* starts_SB;
  T* dq;
  T* dk;
  T* dv;
};

template <class T>
__global__ void __launch_bounds__(AttentionThreads) GradientsOfQueries(HeadSizes sizes, AttentionGradients<T> all) {
  SHARED(tile_a, Tile);
  SHARED(tile_b, Tile);
  SHARED(ds, Tile);
  const int64_t batch = blockIdx.z;
  const int64_t head = BlockY();
  const int64_t kv_head = head / (sizes.heads / sizes.kv_heads);
  const Head<const T> dy = HeadOf(sizes, all.dy, sizes.heads, batch, head);
  const Head<const T> queries = HeadOf(sizes, all.q, sizes.heads, batch, head);
  const Head<const T> keys = HeadOf(sizes, all.k, sizes.kv_heads, batch, kv_head);
  const Head<const T> values = HeadOf(sizes, all.v, sizes.kv_heads, batch, kv_head);
  const int64_t first = BlockX() * TileSize;
  const int64_t query = first + TileRow();
  const BlockStarts starts = StartsOf(sizes, all.starts_SB, batch);
  const int64_t start = starts.At(query);
  const float delta = MultiplyRow(dy, HeadOf(sizes, all.y, sizes.heads, batch, head), query);
  const float lse = query < sizes.sequence ? all.lse[(batch * sizes.heads + head) * sizes.sequence + query] : INFINITY;
  for (int64_t column = 0; column < sizes.head_dim; column += ResultWidth) {
    Results dq{};
    for (int64_t key = starts.FirstKey(first); key <= first; key += TileSize) {
      Columns scores;
      Columns dp;
      MultiplyRows(queries, first, keys, key, tile_a, tile_b, scores);
      MultiplyRows(dy, first, values, key, tile_a, tile_b, dp);
      UNROLL
      for (int i = 0; i < ColumnsOfThread; ++i) {
        const int64_t of_tile = key + TileColumn(i);
        const bool is_seen = of_tile >= start && of_tile <= query && query < sizes.sequence;
        ds[TileRow()][TileColumn(i)] =
            is_seen ? expf(sizes.scale * scores[i] - lse) * sizes.scale * (dp[i] - delta) : 0.0F;
      }
      AddWeightedRows(ds, keys, key, column, tile_b, dq);
    }
    StoreResults(dq, 1.0F, HeadOf(sizes, all.dq, sizes.heads, batch, head), query, column);
  }
}

template <class T>
__global__ void __launch_bounds__(AttentionThreads, 2) GradientsOfKeys(HeadSizes sizes, AttentionGradients<T> all) {
  SHARED(tile_a, Tile);
  SHARED(tile_b, Tile);
  SHARED(p, Tile);
  SHARED(ds, Tile);
  SHARED(delta, float[TileSize]);
  SHARED(lse, float[TileSize]);
  const int64_t batch = blockIdx.z;
  const int64_t kv_head = BlockY();
  const int64_t heads_per_kv = sizes.heads / sizes.kv_heads;
  const Head<const T> keys = HeadOf(sizes, all.k, sizes.kv_heads, batch, kv_head);
  const Head<const T> values = HeadOf(sizes, all.v, sizes.kv_heads, batch, kv_head);
  const int64_t first = BlockX() * TileSize;
  const int64_t key = first + TileRow();
  const BlockStarts starts = StartsOf(sizes, all.starts_SB, batch);
  for (int64_t column = 0; column < sizes.head_dim; column += ResultWidth) {
    Results dk{};
    Results dv{};
    for (int64_t head = kv_head * heads_per_kv; head < (kv_head + 1) * heads_per_kv; ++head) {
      const Head<const T> dy = HeadOf(sizes, all.dy, sizes.heads, batch, head);
      const Head<const T> queries = HeadOf(sizes, all.q, sizes.heads, batch, head);
      const Head<const T> y = HeadOf(sizes, all.y, sizes.heads, batch, head);
      for (int64_t query = first; query < sizes.sequence && starts.At(query) < first + TileSize; query += TileSize) {
        // Of the query of the thread's row, which is another than its key.
        const float of_row = MultiplyRow(dy, y, query + TileRow());
        if (TileColumn(0) == 0) {
          delta[TileRow()] = of_row;
          lse[TileRow()] = query + TileRow() < sizes.sequence
                               ? all.lse[(batch * sizes.heads + head) * sizes.sequence + query + TileRow()]
                               : INFINITY;
        }
        Columns scores;
        Columns dp;
        MultiplyRows(keys, first, queries, query, tile_a, tile_b, scores);
        MultiplyRows(values, first, dy, query, tile_a, tile_b, dp);
        UNROLL
        for (int i = 0; i < ColumnsOfThread; ++i) {
          const int of_tile = TileColumn(i);
          const bool is_seen =
              key >= starts.At(query + of_tile) && key <= query + of_tile && query + of_tile < sizes.sequence;
          const float probability = is_seen ? expf(sizes.scale * scores[i] - lse[of_tile]) : 0.0F;
          p[TileRow()][of_tile] = probability;
          ds[TileRow()][of_tile] = is_seen ? probability * sizes.scale * (dp[i] - delta[of_tile]) : 0.0F;
        }
        AddWeightedRows(p, dy, query, column, tile_b, dv);
        AddWeightedRows(ds, queries, query, column, tile_b, dk);
      }
    }
    StoreResults(dk, 1.0F, HeadOf(sizes, all.dk, sizes.kv_heads, batch, kv_head), key, column);
    StoreResults(dv, 1.0F, HeadOf(sizes, all.dv, sizes.kv_heads, batch, kv_head), key, column);
  }
}

auto Bind(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.q).dtype, [&]<class T>() -> Kernel {
    return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy), q = Resolve<const T>(binder, op.q),
            k = Resolve<const T>(binder, op.k), v = Resolve<const T>(binder, op.v), y = Resolve<const T>(binder, op.y),
            lse = Resolve<const float>(binder, op.lse), starts = ResolveIfSet<const int32_t>(binder, op.starts),
            dq = Resolve<T>(binder, op.dq), dk = Resolve<T>(binder, op.dk), dv = Resolve<T>(binder, op.dv),
            sizes = HeadSizesOf(op, binder.plan())](const Moment& moment) -> Status {
      const AttentionGradients<T> all{.dy = dy.At(moment),
                                      .q = q.At(moment),
                                      .k = k.At(moment),
                                      .v = v.At(moment),
                                      .y = y.At(moment),
                                      .lse = lse.At(moment),
                                      .starts_SB = starts.At(moment),
                                      .dq = dq.At(moment),
                                      .dk = dk.At(moment),
                                      .dv = dv.At(moment)};
      const int64_t tiles = BlocksFor(sizes.sequence, TileSize);
      RETURN_IF_ERROR(Launch(stream, {.grid = {tiles, sizes.heads, sizes.batch}, .threads = AttentionThreads},
                             GradientsOfQueries<T>, sizes, all));
      return Launch(stream, {.grid = {tiles, sizes.kv_heads, sizes.batch}, .threads = AttentionThreads},
                    GradientsOfKeys<T>, sizes, all);
    };
  });
}

}  // namespace shardc::cuda
