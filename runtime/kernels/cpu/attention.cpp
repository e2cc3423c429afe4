// attention: causal, in tiles, with an online softmax, so that no matrix of S x S scores is ever held.
//
// For each (batch, kv head) some positions of queries at a time, of all heads that share the keys, over the tiles of
// keys up to the diagonal: a tile of keys and values is packed once; then, for each tile of queries, scores = q k^T;
// each row keeps its running maximum m and sum l, its output so far being corrected by e^(m_old - m_new) where the
// maximum grew; the output gathers e^(scale scores - m) v in f32. At the end y is that divided by l, and lse = m + log
// l. Keys before the document of a tile's first query are left out, in steps of a tile of queries, so that products
// have few shapes. The work is cut into slots by the plan, so neither bits nor scratch depend on the number of threads.
// Source: Dao 2023, "FlashAttention-2", alg. 1.
#include <algorithm>
#include <limits>

#include "runtime/kernels/cpu/attention_view.h"

namespace shardc::cpu {

template <class T>
struct AttentionOperands {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const int32_t* starts_SB = nullptr;
  T* y = nullptr;
  float* lse = nullptr;
};

template <class T, class E>
class AttentionItem {
 public:
  /// `scratch` is the slot's.
  AttentionItem(const AttentionView& view, const AttentionOperands<T>& all, float* scratch)
      : view_(view), sizes_(view.sizes), path_(view.path), all_(all) {
    const AttentionParts parts(sizes_);
    keys_ = reinterpret_cast<E*>(scratch + parts.keys);
    values_ = reinterpret_cast<E*>(scratch + parts.values);
    queries_ = reinterpret_cast<E*>(scratch + parts.queries);
    outputs_ = scratch + parts.sums_of_values;
    scores_ = scratch + parts.scores;
    // If the types are equal, they take the memory of the scores.
    probabilities_ = reinterpret_cast<E*>(scratch + (std::is_same_v<E, float> ? parts.scores : parts.probabilities));
    maxima_ = scratch + parts.maxima;
    sums_ = scratch + parts.sums;
    corrections_ = scratch + parts.corrections;
  }

  auto Run(int64_t item) -> void {
    batch_ = item / sizes_.kv_heads;
    kv_head_ = item % sizes_.kv_heads;
    starts_ = SequenceStarts(all_.starts_SB, sizes_, batch_);
    const int64_t positions = sizes_.query_positions();
    for (int64_t first = 0; first < sizes_.sequence; first += positions) {
      Attend(first, std::min(sizes_.sequence, first + positions));
    }
  }

  /// Makes the thread's kernels of all products that starts can ask for.
  auto Prepare() -> void {
    ForTileSizes(sizes_, sizes_.blocks.attention_query_tile, [&](int64_t rows, int64_t columns) {
      MultiplyKeys(0, rows, 0, columns);
      MultiplyValues(0, rows, 0, columns, /*adds=*/false);
      MultiplyValues(0, rows, 0, columns, /*adds=*/true);
    });
  }

 private:
  auto Head(int64_t of_group) const -> int64_t { return kv_head_ * sizes_.heads_per_kv() + of_group; }
  /// Of the rows in scratch.
  auto RowOf(int64_t of_group, int64_t position) const -> int64_t {
    return of_group * sizes_.query_positions() + position;
  }

  /// Returns the first key that a tile of queries from `query` on takes.
  auto FirstKey(int64_t query) const -> int64_t {
    const int64_t tile = sizes_.blocks.attention_query_tile;
    return starts_.At(query) / tile * tile;
  }

  /// The queries of positions [first, end).
  auto Attend(int64_t first, int64_t end) -> void {
    const auto& pack = path_.loops->Of<T, E>();
    const int64_t group = sizes_.heads_per_kv();
    for (int64_t head = 0; head < group; ++head) {
      pack.PackLeft(all_.q + view_.QueryHead(batch_, Head(head)) + first * view_.query_stride, view_.query_stride,
                    end - first, sizes_.head_dim, queries_ + RowOf(head, 0) * sizes_.head_stride(),
                    sizes_.head_stride());
    }
    std::fill_n(maxima_, group * sizes_.query_positions(), -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, group * sizes_.query_positions(), 0.0F);
    const int64_t at_key = view_.KeyHead(batch_, kv_head_);
    const CpuBlocks& blocks = sizes_.blocks;
    const int64_t first_key = FirstKey(first);
    for (int64_t key = TileOf(first_key); key < end; key += blocks.attention_key_tile) {
      const int64_t keys = std::min(blocks.attention_key_tile, end - key);
      const int64_t skipped = std::max<int64_t>(0, first_key - key);
      const int64_t at = at_key + (key + skipped) * view_.key_stride;
      pack.PackRightTransposed(all_.k + at, view_.key_stride, sizes_.head_dim, keys - skipped,
                               keys_ + skipped * ColumnStride, sizes_.tile_stride());
      pack.PackRight(all_.v + at, view_.key_stride, keys - skipped, sizes_.head_dim,
                     values_ + skipped * sizes_.head_stride(), sizes_.head_stride());
      for (int64_t head = 0; head < group; ++head) {
        for (int64_t query = first; query < end; query += blocks.attention_query_tile) {
          const int64_t rows = std::min(blocks.attention_query_tile, end - query);
          const int64_t begin = std::max(key, FirstKey(query));
          const int64_t columns = std::min(key + keys, query + rows) - begin;
          if (columns > 0) {
            AddTile(RowOf(head, query - first), rows, begin - key, columns, starts_.Seen(query, rows, begin),
                    TileOf(FirstKey(query)) < key);
          }
        }
      }
    }
    Finish(first, end);
  }

  /// Returns the first key of the tile that has `key`.
  auto TileOf(int64_t key) const -> int64_t {
    return key / sizes_.blocks.attention_key_tile * sizes_.blocks.attention_key_tile;
  }

  /// Takes `columns` of the packed keys, from `begin` on, to some rows of queries, which have taken others if `adds`.
  auto AddTile(int64_t row, int64_t rows, int64_t begin, int64_t columns, const SeenColumns& seen, bool adds) -> void {
    MultiplyKeys(row, rows, begin, columns);
    path_.loops->Of<E>().SoftmaxTile(scores_, sizes_.tile_stride(), rows, columns, seen, view_.scale, maxima_ + row,
                                     sums_ + row, corrections_, probabilities_, sizes_.tile_stride());
    if (adds) {
      path_.loops->ScaleRows(corrections_, rows, sizes_.head_dim, outputs_ + row * sizes_.head_stride(),
                             sizes_.head_stride());
    }
    MultiplyValues(row, rows, begin, columns, adds);
  }

  auto MultiplyKeys(int64_t row, int64_t rows, int64_t begin, int64_t columns) -> void {
    Multiply(path_,
             {.m = rows,
              .n = columns,
              .k = sizes_.head_dim,
              .stride_a = sizes_.head_stride(),
              .stride_b = sizes_.tile_stride(),
              .stride_c = sizes_.tile_stride()},
             queries_ + row * sizes_.head_stride(), keys_ + begin * ColumnStride, scores_);
  }

  auto MultiplyValues(int64_t row, int64_t rows, int64_t begin, int64_t columns, bool adds) -> void {
    Multiply(path_,
             {.m = rows,
              .n = sizes_.head_dim,
              .k = columns,
              .stride_a = sizes_.tile_stride(),
              .stride_b = sizes_.head_stride(),
              .stride_c = sizes_.head_stride(),
              .adds = adds},
             probabilities_, values_ + begin * sizes_.head_stride(), outputs_ + row * sizes_.head_stride());
  }

  auto Finish(int64_t first, int64_t end) -> void {
    for (int64_t of_group = 0; of_group < sizes_.heads_per_kv(); ++of_group) {
      const int64_t head = Head(of_group);
      const int64_t row = RowOf(of_group, 0);
      path_.loops->Of<T>().DivideRows(
          sums_ + row, end - first, sizes_.head_dim, outputs_ + row * sizes_.head_stride(), sizes_.head_stride(),
          all_.y + view_.QueryHead(batch_, head) + first * view_.query_stride, view_.query_stride);
      float* const lse = all_.lse + (batch_ * sizes_.heads + head) * sizes_.sequence + first;
      for (int64_t i = 0; i < end - first; ++i) {
        lse[i] = maxima_[row + i] + std::log(sums_[row + i]);
      }
    }
  }

  /// Elements from a packed key to the next, which lie in columns: of bf16 pairs of terms.
  static constexpr int64_t ColumnStride = std::is_same_v<E, float> ? 1 : 2;

  const AttentionView& view_;
  const AttentionSizes& sizes_;
  const GemmPath& path_;
  const AttentionOperands<T>& all_;
  E* keys_ = nullptr;
  E* values_ = nullptr;
  E* queries_ = nullptr;
  float* outputs_ = nullptr;
  float* scores_ = nullptr;
  E* probabilities_ = nullptr;
  float* maxima_ = nullptr;
  float* sums_ = nullptr;
  float* corrections_ = nullptr;
  int64_t batch_ = 0;
  int64_t kv_head_ = 0;
  SequenceStarts starts_;
};

auto Bind(const op::Attention& op, Binder& binder) -> Kernel {
  const AttentionView view = ViewAttention(op, binder);
  return ForProductType(view.path, binder.ViewOf(op.q).dtype, [&]<class T, class E>() -> Kernel {
    return BindOver(
        [view, has_run = false](const T* q, const T* k, const T* v, const int32_t* starts_SB, T* y, float* lse,
                                float* scratch) mutable {
          const AttentionOperands<T> all{.q = q, .k = k, .v = v, .starts_SB = starts_SB, .y = y, .lse = lse};
          RunItems<AttentionItem<T, E>, AttentionParts>(view, all, scratch, has_run);
        },
        Resolve<const T>(binder, op.q), Resolve<const T>(binder, op.k), Resolve<const T>(binder, op.v),
        ResolveIfSet<const int32_t>(binder, op.starts), Resolve<T>(binder, op.y), Resolve<float>(binder, op.lse),
        Resolve<float>(binder, op.scratch));
  });
}

}  // namespace shardc::cpu
