// cross_entropy_backward, over the logits: (e^(logit - lse) - onehot) / count. A row without a valid target is zero,
// and so is everything where count is 0 (no valid target on any rank): never 0 / 0. logits_NV: N rows, V vocabulary;
// targets_N, lse_N.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::CrossEntropyBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    CheckSameBytes(binder, op.dlogits, op.logits);
    return BindOver(
        [rows = size.rows, columns = size.columns, vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head),
         backward = LoopsOf(binder.plan()).Of<T>().CrossEntropyBackward](
            T* logits_NV, const int32_t* targets_N, const float* lse_N, const double* count) -> Status {
          RETURN_IF_ERROR(CheckTokens(targets_N, rows, -1, vocab.total));
          const double valid = *count;
          const float scale = valid > 0 ? static_cast<float>(1.0 / valid) : 0.0F;
          ParallelRanges(rows, RowsPerThread(columns), [&](int64_t begin, int64_t end) {
            backward(targets_N + begin, lse_N + begin, end - begin, columns, vocab.first, vocab.size, scale,
                     logits_NV + begin * columns);
          });
          return Success{};
        },
        Resolve<T>(binder, op.dlogits), Resolve<const int32_t>(binder, op.targets),
        Resolve<const float>(binder, op.lse), Resolve<const double>(binder, op.count));
  });
}

}  // namespace shardc::cpu
