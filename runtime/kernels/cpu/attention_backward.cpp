// attention_backward: probabilities are computed again from lse, tile by tile; nothing of S x S is held.
//
// With p = e^(scale q k^T - lse) and delta = rowsum(dy * y): dv = p^T dy, ds = scale p (dy v^T - delta), dq = ds k,
// dk = ds^T q. An item of work is one (batch, kv head): for each tile of keys its query heads in order, for each of
// those the tiles of queries from the diagonal on. dk and dv of a key tile are done in one go, as dk^T = q^T ds and
// dv^T = dy^T p: so the few queries are transposed instead of p and ds, and rows of sums are long. dq gathers over the
// key tiles; all gather in f32. Queries of documents after a tile's keys are left out, and so are keys before the
// document of a tile's first query, in steps of a tile of queries. The work is cut into slots by the plan, so neither
// bits nor scratch depend on the number of threads. Source: Dao 2023, "FlashAttention-2", alg. 2.
#include <algorithm>

#include "runtime/kernels/cpu/attention_view.h"

namespace shardc::cpu {

template <class T>
struct BackwardOperands {
  const T* dy = nullptr;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* y = nullptr;
  const float* lse = nullptr;
  const int32_t* starts_SB = nullptr;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
};

template <class T, class E>
class AttentionBackwardItem {
 public:
  /// `scratch` is the slot's.
  AttentionBackwardItem(const AttentionView& view, const BackwardOperands<T>& all, float* scratch)
      : view_(view), sizes_(view.sizes), path_(view.path), all_(all) {
    const AttentionBackwardParts parts(sizes_);
    const auto elements = [&](int64_t part) { return reinterpret_cast<E*>(scratch + part); };
    key_columns_ = elements(parts.key_columns);
    value_columns_ = elements(parts.value_columns);
    key_rows_ = elements(parts.key_rows);
    queries_ = elements(parts.queries);
    query_columns_ = elements(parts.query_columns);
    dk_ = scratch + parts.dk;
    dv_ = scratch + parts.dv;
    scores_ = scratch + parts.scores;
    dp_ = scratch + parts.dp;
    // p and ds take the memory of scores and dp if the types are equal.
    p_ = elements(std::is_same_v<E, float> ? parts.scores : parts.gradients);
    ds_ = std::is_same_v<E, float> ? elements(parts.dp) : p_ + parts.tile;
    pairs_ = elements(parts.pairs);
    delta_ = scratch + parts.delta;
    dq_ = scratch + parts.dq;
  }

  auto Run(int64_t item) -> void {
    batch_ = item / sizes_.kv_heads;
    kv_head_ = item % sizes_.kv_heads;
    starts_ = SequenceStarts(all_.starts_SB, sizes_, batch_);
    for (int64_t head = 0; head < sizes_.heads_per_kv(); ++head) {
      const int64_t at = view_.QueryHead(batch_, Head(head));
      path_.loops->Of<T>().RowDots(all_.dy + at, all_.y + at, view_.query_stride, sizes_.sequence, sizes_.head_dim,
                                   delta_ + head * sizes_.sequence);
    }
    const int64_t key_tile = sizes_.blocks.attention_key_tile;
    for (int64_t key = 0; key < sizes_.sequence; key += key_tile) {
      RunKeys(key, std::min(key_tile, sizes_.sequence - key));
    }
    for (int64_t head = 0; head < sizes_.heads_per_kv(); ++head) {
      path_.loops->Of<T>().StoreBlock(DqOf(head, 0), dq_stride(), sizes_.sequence, sizes_.head_dim, false,
                                      all_.dq + view_.QueryHead(batch_, Head(head)), view_.query_stride);
    }
  }

  /// Makes the thread's kernels of all products that starts can ask for.
  auto Prepare() -> void {
    ForTileSizes(sizes_, sizes_.blocks.attention_backward_query_tile, [&](int64_t rows, int64_t columns) {
      MultiplyKeys(rows, 0, columns, key_columns_, scores_);
      MultiplyQueries(std::is_same_v<E, float> ? p_ : pairs_, rows, columns, dv_);
      AddToQueries(DqOf(0, 0), rows, 0, columns, /*adds=*/false);
      AddToQueries(DqOf(0, 0), rows, 0, columns, /*adds=*/true);
    });
  }

 private:
  auto Head(int64_t of_group) const -> int64_t { return kv_head_ * sizes_.heads_per_kv() + of_group; }
  auto dq_stride() const -> int64_t { return RoundUp(sizes_.head_dim, 16); }
  auto DqOf(int64_t of_group, int64_t query) const -> float* {
    return dq_ + (of_group * sizes_.sequence + query) * dq_stride();
  }

  auto RunKeys(int64_t key, int64_t keys) -> void {
    const auto& pack = path_.loops->Of<T, E>();
    const int64_t at_key = view_.KeyHead(batch_, kv_head_) + key * view_.key_stride;
    pack.PackRightTransposed(all_.k + at_key, view_.key_stride, sizes_.head_dim, keys, key_columns_,
                             sizes_.tile_stride());
    pack.PackRightTransposed(all_.v + at_key, view_.key_stride, sizes_.head_dim, keys, value_columns_,
                             sizes_.tile_stride());
    pack.PackRight(all_.k + at_key, view_.key_stride, keys, sizes_.head_dim, key_rows_, sizes_.head_stride());
    const int64_t query_tile = sizes_.blocks.attention_backward_query_tile;
    std::fill_n(dk_, sizes_.head_dim * sizes_.tile_stride(), 0.0F);
    std::fill_n(dv_, sizes_.head_dim * sizes_.tile_stride(), 0.0F);
    const int64_t end = starts_.EndOf(key, key + keys);
    for (int64_t head = 0; head < sizes_.heads_per_kv(); ++head) {
      // Tiles of queries begin where tiles of keys do.
      for (int64_t query = key; query < end; query += query_tile) {
        const int64_t rows = std::min(query_tile, sizes_.sequence - query);
        const int64_t first = starts_.At(query) / query_tile * query_tile;
        const int64_t begin = std::max(key, first);
        // The first tile of keys that it meets sets dq.
        const bool adds = first < key;
        RunTile(head, query, rows, key, begin, std::min(key + keys, query + rows) - begin, adds);
      }
    }
    const auto& store = path_.loops->Of<T>();
    store.StoreBlockTransposed(dk_, sizes_.tile_stride(), sizes_.head_dim, keys, false, all_.dk + at_key,
                               view_.key_stride);
    store.StoreBlockTransposed(dv_, sizes_.tile_stride(), sizes_.head_dim, keys, false, all_.dv + at_key,
                               view_.key_stride);
  }

  /// Takes `columns` of the keys packed from `key` on: those from `begin` on.
  auto RunTile(int64_t head, int64_t query, int64_t rows, int64_t key, int64_t begin, int64_t columns, bool adds)
      -> void {
    const int64_t at_query = view_.QueryHead(batch_, Head(head)) + query * view_.query_stride;
    const T* const q = all_.q + at_query;
    const T* const dy = all_.dy + at_query;
    const auto& pack = path_.loops->Of<T, E>();
    pack.PackLeft(q, view_.query_stride, rows, sizes_.head_dim, queries_, sizes_.head_stride());
    MultiplyKeys(rows, begin - key, columns, key_columns_, scores_);
    pack.PackLeft(dy, view_.query_stride, rows, sizes_.head_dim, queries_, sizes_.head_stride());
    MultiplyKeys(rows, begin - key, columns, value_columns_, dp_);
    path_.loops->Of<E>().AttentionGradients(scores_, dp_, sizes_.tile_stride(), rows, columns,
                                            starts_.Seen(query, rows, begin), view_.scale,
                                            all_.lse + (batch_ * sizes_.heads + Head(head)) * sizes_.sequence + query,
                                            delta_ + head * sizes_.sequence + query, p_, ds_, sizes_.tile_stride());
    AddToKeys(dy, p_, rows, columns, dv_ + begin - key);
    AddToKeys(q, ds_, rows, columns, dk_ + begin - key);
    AddToQueries(DqOf(head, query), rows, begin - key, columns, adds);
  }

  /// Multiplies the queries and `columns` of the packed columns, from `begin` on.
  auto MultiplyKeys(int64_t rows, int64_t begin, int64_t columns, const E* packed, float* products) -> void {
    Multiply(path_,
             {.m = rows,
              .n = columns,
              .k = sizes_.head_dim,
              .stride_a = sizes_.head_stride(),
              .stride_b = sizes_.tile_stride(),
              .stride_c = sizes_.tile_stride()},
             queries_, packed + begin * ColumnStride, products);
  }

  /// Writes ds keys to dq, or adds it: of the packed keys from `begin` on.
  auto AddToQueries(float* dq, int64_t rows, int64_t begin, int64_t columns, bool adds) -> void {
    Multiply(path_,
             {.m = rows,
              .n = sizes_.head_dim,
              .k = columns,
              .stride_a = sizes_.tile_stride(),
              .stride_b = sizes_.head_stride(),
              .stride_c = dq_stride(),
              .adds = adds},
             ds_, key_rows_ + begin * sizes_.head_stride(), dq);
  }

  /// sums += queries^T tile.
  auto AddToKeys(const T* queries, const E* tile, int64_t rows, int64_t columns, float* sums) -> void {
    path_.loops->Of<T, E>().PackLeftTransposed(queries, view_.query_stride, sizes_.head_dim, rows, query_columns_,
                                               sizes_.queries_stride());
    if constexpr (!std::is_same_v<E, float>) {
      path_.loops->Of<E, E>().PackRight(tile, sizes_.tile_stride(), rows, columns, pairs_, sizes_.tile_stride());
      tile = pairs_;
    }
    MultiplyQueries(tile, rows, columns, sums);
  }

  auto MultiplyQueries(const E* tile, int64_t rows, int64_t columns, float* sums) -> void {
    Multiply(path_,
             {.m = sizes_.head_dim,
              .n = columns,
              .k = rows,
              .stride_a = sizes_.queries_stride(),
              .stride_b = sizes_.tile_stride(),
              .stride_c = sizes_.tile_stride(),
              .adds = true},
             query_columns_, tile, sums);
  }

  /// Elements from a packed key to the next, which lie in columns: of bf16 pairs of terms.
  static constexpr int64_t ColumnStride = std::is_same_v<E, float> ? 1 : 2;

  const AttentionView& view_;
  const AttentionSizes& sizes_;
  const GemmPath& path_;
  const BackwardOperands<T>& all_;
  E* key_columns_ = nullptr;
  E* value_columns_ = nullptr;
  E* key_rows_ = nullptr;
  E* queries_ = nullptr;
  E* query_columns_ = nullptr;
  E* p_ = nullptr;
  E* ds_ = nullptr;
  E* pairs_ = nullptr;
  float* dk_ = nullptr;
  float* dv_ = nullptr;
  float* scores_ = nullptr;
  float* dp_ = nullptr;
  float* delta_ = nullptr;
  float* dq_ = nullptr;
  int64_t batch_ = 0;
  int64_t kv_head_ = 0;
  SequenceStarts starts_;
};

auto Bind(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  const AttentionView view = ViewAttention(op, binder);
  return ForProductType(view.path, binder.ViewOf(op.q).dtype, [&]<class T, class E>() -> Kernel {
    return BindOver(
        [view, has_run = false](const T* dy, const T* q, const T* k, const T* v, const T* y, const float* lse,
                                const int32_t* starts_SB, T* dq, T* dk, T* dv, float* scratch) mutable {
          const BackwardOperands<T> all{.dy = dy,
                                        .q = q,
                                        .k = k,
                                        .v = v,
                                        .y = y,
                                        .lse = lse,
                                        .starts_SB = starts_SB,
                                        .dq = dq,
                                        .dk = dk,
                                        .dv = dv};
          RunItems<AttentionBackwardItem<T, E>, AttentionBackwardParts>(view, all, scratch, has_run);
        },
        Resolve<const T>(binder, op.dy), Resolve<const T>(binder, op.q), Resolve<const T>(binder, op.k),
        Resolve<const T>(binder, op.v), Resolve<const T>(binder, op.y), Resolve<const float>(binder, op.lse),
        ResolveIfSet<const int32_t>(binder, op.starts), Resolve<T>(binder, op.dq), Resolve<T>(binder, op.dk),
        Resolve<T>(binder, op.dv), Resolve<float>(binder, op.scratch));
  });
}

}  // namespace shardc::cpu
