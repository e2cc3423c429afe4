// attention: causal, in tiles, with an online softmax, so that no matrix of S x S scores is ever held.
//
// For each (batch, head) and tile of queries, over the tiles of keys up to the diagonal: scores = scale q k^T; each row
// keeps its running maximum m and sum l, y being corrected by e^(m_old - m_new) where the maximum grew; y += e^(scores
// - m) v. At the end y is divided by l, and lse = m + log l. y itself is the accumulator; k and v of a group of heads
// are read in place. The work is cut into slots by the plan, so neither bits nor scratch depend on the number of
// threads. Source: Dao 2023, "FlashAttention-2", alg. 1.
#include <algorithm>
#include <limits>

#include "runtime/kernels/cpu/attention_view.h"
#include "runtime/kernels/cpu/exponential.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/reductions.h"

namespace shardc {

template <class T>
struct HeadOperands {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  T* y = nullptr;
  float* lse = nullptr;
};

template <class T>
static auto ScaleRow(T* row, int64_t n, float factor) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    row[i] = static_cast<T>(static_cast<float>(row[i]) * factor);
  }
}

/// One row of a tile: scores become e^(score - maximum) up to `visible`, 0 beyond. Returns what the sum and the output
/// so far are to be multiplied with.
static auto SoftmaxRow(float* scores, int64_t visible, int64_t width, float& maximum, float& sum) -> float {
  const float before = maximum;
  maximum = std::max(before, Max(scores, visible));
  const float greatest = maximum;
  float added = 0;
#pragma omp simd reduction(+ : added)
  for (int64_t c = 0; c < visible; ++c) {
    const float p = Exp(scores[c] - greatest);
    scores[c] = p;
    added += p;
  }
  std::fill(scores + visible, scores + width, 0.0F);
  const float correction = Exp(before - greatest);
  sum = sum * correction + added;
  return correction;
}

template <class T>
static auto AttendHead(const AttentionView& view, const HeadOperands<T>& head, float* scratch) -> void {
  float* const scores = scratch;
  float* const maxima = scores + AttentionQueryTile * AttentionKeyTile;
  float* const sums = maxima + AttentionQueryTile;
  const int64_t sequence = view.sizes.sequence;
  for (int64_t query = 0; query < sequence; query += AttentionQueryTile) {
    const int64_t rows = std::min(AttentionQueryTile, sequence - query);
    T* const y = head.y + query * view.query_stride;
    std::fill_n(maxima, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sums, rows, 0.0F);
    for (int64_t key = 0; key < query + rows; key += AttentionKeyTile) {
      const int64_t columns = std::min(AttentionKeyTile, query + rows - key);
      Gemm({.m = rows,
            .n = columns,
            .k = view.head_dim,
            .transpose_b = true,
            .stride_a = view.query_stride,
            .stride_b = view.key_stride,
            .stride_c = AttentionKeyTile,
            .alpha = view.scale},
           head.q + query * view.query_stride, head.k + key * view.key_stride, scores);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t visible = std::min(columns, query + row - key + 1);
        const float correction = SoftmaxRow(scores + row * AttentionKeyTile, visible, columns, maxima[row], sums[row]);
        if (key > 0 && correction != 1.0F) {
          ScaleRow(y + row * view.query_stride, view.head_dim, correction);
        }
      }
      Gemm({.m = rows,
            .n = view.head_dim,
            .k = columns,
            .stride_a = AttentionKeyTile,
            .stride_b = view.key_stride,
            .stride_c = view.query_stride,
            .beta = key > 0 ? 1.0F : 0.0F},
           scores, head.v + key * view.key_stride, y);
    }
    for (int64_t row = 0; row < rows; ++row) {
      ScaleRow(y + row * view.query_stride, view.head_dim, 1.0F / sums[row]);
      head.lse[query + row] = maxima[row] + std::log(sums[row]);
    }
  }
}

template <class T>
static auto BindAttention(const op::Attention& op, Binder& binder) -> Kernel {
  return
      [q = Resolve<const T>(binder, op.q), k = Resolve<const T>(binder, op.k), v = Resolve<const T>(binder, op.v),
       y = Resolve<T>(binder, op.y), lse = Resolve<float>(binder, op.lse), scratch = Resolve<float>(binder, op.scratch),
       view = ViewAttention(op, binder)](const Moment& moment) -> Status {
        const int64_t slots = view.sizes.forward_slots();
        ParallelSlots(slots, [&](int64_t slot) {
          const SerialGemm serial;
          for (int64_t item = slot; item < view.sizes.batch * view.sizes.heads; item += slots) {
            const int64_t batch = item / view.sizes.heads;
            const int64_t head = item % view.sizes.heads;
            const int64_t query_head = view.QueryHead(batch, head);
            const int64_t key_head = view.KeyHead(batch, head / view.heads_per_kv());
            AttendHead<T>(view,
                          {.q = q.At(moment) + query_head,
                           .k = k.At(moment) + key_head,
                           .v = v.At(moment) + key_head,
                           .y = y.At(moment) + query_head,
                           .lse = lse.At(moment) + item * view.sizes.sequence},
                          scratch.At(moment) + slot * AttentionSlotFloats);
          }
        });
        return Success{};
      };
}

auto Bind(const op::Attention& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.q).dtype, [&]<class T>() { return BindAttention<T>(op, binder); });
}

}  // namespace shardc
