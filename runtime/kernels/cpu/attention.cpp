// attention: causal, in tiles, with an online softmax, so that no matrix of S x S scores is ever held.
//
// For each (batch, kv head) some positions of queries at a time, of all heads that share the keys, over the tiles of
// keys up to the diagonal: a tile of keys and values is packed once; then, for each tile of queries, scores = q k^T;
// each row keeps its running maximum m and sum l, its output so far being corrected by e^(m_old - m_new) where the
// maximum grew; the output gathers e^(scale scores - m) v in f32. At the end y is that divided by l, and lse = m + log
// l. The work is cut into slots by the plan, so neither bits nor scratch depend on the number of threads. Source: Dao
// 2023, "FlashAttention-2", alg. 1.
#include <algorithm>
#include <limits>

#include "runtime/kernels/cpu/attention_view.h"

namespace shardc::cpu {

template <class T>
struct AttentionOperands {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
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
    const int64_t positions = sizes_.query_positions();
    for (int64_t first = 0; first < sizes_.sequence; first += positions) {
      Attend(first, std::min(sizes_.sequence, first + positions));
    }
  }

 private:
  auto Head(int64_t of_group) const -> int64_t { return kv_head_ * sizes_.heads_per_kv() + of_group; }
  /// Of the rows in scratch.
  auto RowOf(int64_t of_group, int64_t position) const -> int64_t {
    return of_group * sizes_.query_positions() + position;
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
    for (int64_t key = 0; key < end; key += blocks.attention_key_tile) {
      const int64_t keys = std::min(blocks.attention_key_tile, end - key);
      pack.PackRightTransposed(all_.k + at_key + key * view_.key_stride, view_.key_stride, sizes_.head_dim, keys, keys_,
                               sizes_.tile_stride());
      pack.PackRight(all_.v + at_key + key * view_.key_stride, view_.key_stride, keys, sizes_.head_dim, values_,
                     sizes_.head_stride());
      for (int64_t head = 0; head < group; ++head) {
        for (int64_t query = first; query < end; query += blocks.attention_query_tile) {
          const int64_t rows = std::min(blocks.attention_query_tile, end - query);
          if (query + rows > key) {
            AddTile(RowOf(head, query - first), rows, key, std::min(keys, query + rows - key), query - key + 1);
          }
        }
      }
    }
    Finish(first, end);
  }

  auto AddTile(int64_t row, int64_t rows, int64_t key, int64_t columns, int64_t visible) -> void {
    float* const outputs = outputs_ + row * sizes_.head_stride();
    Multiply(path_,
             {.m = rows,
              .n = columns,
              .k = sizes_.head_dim,
              .stride_a = sizes_.head_stride(),
              .stride_b = sizes_.tile_stride(),
              .stride_c = sizes_.tile_stride()},
             queries_ + row * sizes_.head_stride(), keys_, scores_);
    path_.loops->Of<E>().SoftmaxTile(scores_, sizes_.tile_stride(), rows, columns, visible, view_.scale, maxima_ + row,
                                     sums_ + row, corrections_, probabilities_, sizes_.tile_stride());
    if (key > 0) {
      path_.loops->ScaleRows(corrections_, rows, sizes_.head_dim, outputs, sizes_.head_stride());
    }
    Multiply(path_,
             {.m = rows,
              .n = sizes_.head_dim,
              .k = columns,
              .stride_a = sizes_.tile_stride(),
              .stride_b = sizes_.head_stride(),
              .stride_c = sizes_.head_stride(),
              .adds = key > 0},
             probabilities_, values_, outputs);
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
};

auto Bind(const op::Attention& op, Binder& binder) -> Kernel {
  const AttentionView view = ViewAttention(op, binder);
  return ForProductType(view.path, binder.ViewOf(op.q).dtype, [&]<class T, class E>() -> Kernel {
    return BindOver(
        [view, has_run = false](const T* q, const T* k, const T* v, T* y, float* lse, float* scratch) mutable {
          const AttentionOperands<T> all{.q = q, .k = k, .v = v, .y = y, .lse = lse};
          RunItems<AttentionItem<T, E>, AttentionParts>(view, all, scratch, has_run);
        },
        Resolve<const T>(binder, op.q), Resolve<const T>(binder, op.k), Resolve<const T>(binder, op.v),
        Resolve<T>(binder, op.y), Resolve<float>(binder, op.lse), Resolve<float>(binder, op.scratch));
  });
}

}  // namespace shardc::cpu
