// attention_backward: probabilities are computed again from lse, tile by tile; nothing of S x S is held.
//
// With p = e^(scale q k^T - lse) and delta = rowsum(dy * y): dv = p^T dy, ds = scale p (dy v^T - delta), dq = ds k,
// dk = ds^T q. An item of work is one (batch, kv head): for each tile of keys its query heads in order, for each of
// those the tiles of queries from the diagonal on. dk and dv of a key tile are done in one go; dq gathers over the key
// tiles. The work is cut into slots by the plan, so neither bits nor scratch depend on the number of threads. Source:
// Dao 2023, "FlashAttention-2", alg. 2.
#include <algorithm>

#include "runtime/kernels/cpu/attention_view.h"
#include "runtime/kernels/cpu/exponential.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/reductions.h"

namespace shardc {

template <class T>
struct BackwardOperands {
  const T* dy = nullptr;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* y = nullptr;
  const float* lse = nullptr;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
  float* delta = nullptr;
};

/// A tile of scores and one of dy v^T become p and ds; what the mask hides becomes 0.
static auto ProbabilitiesAndGradients(float* p, float* ds, int64_t rows, int64_t columns, int64_t first_visible,
                                      const float* lse, const float* delta, float scale) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    float* const p_C = p + row * AttentionKeyTile;
    float* const ds_C = ds + row * AttentionKeyTile;
    const int64_t visible = std::min(columns, first_visible + row);
    const float lse_of_row = lse[row];
    const float delta_of_row = delta[row];
#pragma omp simd
    for (int64_t c = 0; c < visible; ++c) {
      const float probability = Exp(p_C[c] - lse_of_row);
      p_C[c] = probability;
      ds_C[c] = scale * probability * (ds_C[c] - delta_of_row);
    }
    std::fill(p_C + visible, p_C + columns, 0.0F);
    std::fill(ds_C + visible, ds_C + columns, 0.0F);
  }
}

/// What one pair of tiles adds to the gradients of one query head. `first` marks the first tile that adds to dk and dv.
template <class T>
static auto BackwardTile(const AttentionView& view, const BackwardOperands<T>& all, int64_t batch, int64_t head,
                         int64_t query, int64_t key, bool first, float* scratch) -> void {
  float* const p = scratch;
  float* const ds = p + AttentionQueryTile * AttentionKeyTile;
  const int64_t sequence = view.sizes.sequence;
  const int64_t rows = std::min(AttentionQueryTile, sequence - query);
  const int64_t columns = std::min(AttentionKeyTile, sequence - key);
  const int64_t at_query = view.QueryHead(batch, head) + query * view.query_stride;
  const int64_t at_key = view.KeyHead(batch, head / view.heads_per_kv()) + key * view.key_stride;
  const int64_t at_row = (batch * view.sizes.heads + head) * sequence + query;

  const auto scores = [&](const T* left, const T* right, float alpha, float* out) {
    Gemm({.m = rows,
          .n = columns,
          .k = view.head_dim,
          .transpose_b = true,
          .stride_a = view.query_stride,
          .stride_b = view.key_stride,
          .stride_c = AttentionKeyTile,
          .alpha = alpha},
         left + at_query, right + at_key, out);
  };
  scores(all.q, all.k, view.scale, p);
  scores(all.dy, all.v, 1, ds);
  ProbabilitiesAndGradients(p, ds, rows, columns, query - key + 1, all.lse + at_row, all.delta + at_row, view.scale);

  const auto to_keys = [&](const float* tile, const T* right, T* out) {
    Gemm({.m = columns,
          .n = view.head_dim,
          .k = rows,
          .transpose_a = true,
          .stride_a = AttentionKeyTile,
          .stride_b = view.query_stride,
          .stride_c = view.key_stride,
          .beta = first ? 0.0F : 1.0F},
         tile, right + at_query, out + at_key);
  };
  to_keys(p, all.dy, all.dv);
  to_keys(ds, all.q, all.dk);
  Gemm({.m = rows,
        .n = view.head_dim,
        .k = columns,
        .stride_a = AttentionKeyTile,
        .stride_b = view.key_stride,
        .stride_c = view.query_stride,
        .beta = key == 0 ? 0.0F : 1.0F},
       ds, all.k + at_key, all.dq + at_query);
}

/// delta of one query head: the row sums of dy * y.
template <class T>
static auto DeltaOfHead(const AttentionView& view, const BackwardOperands<T>& all, int64_t batch, int64_t head)
    -> void {
  const int64_t at_row = (batch * view.sizes.heads + head) * view.sizes.sequence;
  for (int64_t s = 0; s < view.sizes.sequence; ++s) {
    const int64_t at_query = view.QueryHead(batch, head) + s * view.query_stride;
    const T* const dy_D = all.dy + at_query;
    const T* const y_D = all.y + at_query;
    all.delta[at_row + s] = static_cast<float>(
        Sum(view.head_dim, [=](int64_t i) { return static_cast<float>(dy_D[i]) * static_cast<float>(y_D[i]); }));
  }
}

template <class T>
static auto BackwardItem(const AttentionView& view, const BackwardOperands<T>& all, int64_t item, float* scratch)
    -> void {
  const int64_t batch = item / view.sizes.kv_heads;
  const int64_t first_head = item % view.sizes.kv_heads * view.heads_per_kv();
  const int64_t end_head = first_head + view.heads_per_kv();
  for (int64_t head = first_head; head < end_head; ++head) {
    DeltaOfHead(view, all, batch, head);
  }
  // The mask is a triangle only if tiles of queries and keys meet the diagonal together.
  static_assert(AttentionQueryTile == AttentionKeyTile);
  for (int64_t key = 0; key < view.sizes.sequence; key += AttentionKeyTile) {
    for (int64_t head = first_head; head < end_head; ++head) {
      for (int64_t query = key; query < view.sizes.sequence; query += AttentionQueryTile) {
        BackwardTile(view, all, batch, head, query, key, head == first_head && query == key, scratch);
      }
    }
  }
}

template <class T>
static auto BindAttentionBackward(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  return [dy = Resolve<const T>(binder, op.dy), q = Resolve<const T>(binder, op.q), k = Resolve<const T>(binder, op.k),
          v = Resolve<const T>(binder, op.v), y = Resolve<const T>(binder, op.y),
          lse = Resolve<const float>(binder, op.lse), dq = Resolve<T>(binder, op.dq), dk = Resolve<T>(binder, op.dk),
          dv = Resolve<T>(binder, op.dv), scratch = Resolve<float>(binder, op.scratch),
          view = ViewAttention(op, binder)](const Moment& moment) -> Status {
    const BackwardOperands<T> all{.dy = dy.At(moment),
                                  .q = q.At(moment),
                                  .k = k.At(moment),
                                  .v = v.At(moment),
                                  .y = y.At(moment),
                                  .lse = lse.At(moment),
                                  .dq = dq.At(moment),
                                  .dk = dk.At(moment),
                                  .dv = dv.At(moment),
                                  .delta = scratch.At(moment)};
    float* const first_slot = scratch.At(moment) + AttentionDeltaFloats(view.sizes);
    const int64_t slots = view.sizes.backward_slots();
    ParallelSlots(slots, [&](int64_t slot) {
      const SerialGemm serial;
      for (int64_t item = slot; item < view.sizes.batch * view.sizes.kv_heads; item += slots) {
        BackwardItem(view, all, item, first_slot + slot * AttentionBackwardSlotFloats);
      }
    });
    return Success{};
  };
}

auto Bind(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.q).dtype, [&]<class T>() { return BindAttentionBackward<T>(op, binder); });
}

}  // namespace shardc
