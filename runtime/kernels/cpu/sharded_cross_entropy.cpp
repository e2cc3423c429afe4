// sharded_cross_entropy: each row's log_sum_exp out of the ranks' parts, in rank order and in f64; then the sum over
// the targets in this rank's range of the vocabulary, in row order. logits_NV: N rows, V columns; parts_RN: R ranks;
// targets_N, lse_N.
#include <cmath>
#include <limits>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

/// A part is minus infinity where a rank has no column; NaN stays one.
static auto MergedOf(const float* parts, int64_t ranks, int64_t rows) -> float {
  double greatest = -std::numeric_limits<double>::infinity();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    greatest = std::max(greatest, static_cast<double>(parts[rank * rows]));
  }
  double sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    sum += std::exp(static_cast<double>(parts[rank * rows]) - greatest);
  }
  return static_cast<float>(greatest + std::log(sum));
}

auto Bind(const op::ShardedCrossEntropy& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    const bool adds = AddsOnto(binder, op.loss, op.loss_onto);
    return BindOver(
        [size, ranks = binder.plan().mesh.size(op.vocab_axes),
         vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head), adds](
            const T* logits_NV, const int32_t* targets_N, const float* parts_RN, double* sum, float* lse_N) -> Status {
          RETURN_IF_ERROR(CheckTokens(targets_N, size.rows, -1, vocab.total));
          double total = 0;
          for (int64_t row = 0; row < size.rows; ++row) {
            lse_N[row] = MergedOf(parts_RN + row, ranks, size.rows);
            if (vocab.Has(targets_N[row])) {
              const T logit = logits_NV[row * size.columns + targets_N[row] - vocab.first];
              total += static_cast<double>(lse_N[row]) - static_cast<double>(Load(logit));
            }
          }
          *sum = (adds ? *sum : 0) + total;
          return Success{};
        },
        Resolve<const T>(binder, op.logits), Resolve<const int32_t>(binder, op.targets),
        Resolve<const float>(binder, op.parts), Resolve<double>(binder, op.loss), Resolve<float>(binder, op.lse));
  });
}

}  // namespace shardc::cpu
