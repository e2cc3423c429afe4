// log_sum_exp of this rank's range of the vocabulary. logits_NV: N rows, V columns; lse_N.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::LogSumExp& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    return BindOver(
        [size, vocabulary = VocabShardOf(binder, op.vocab_axes, size.columns, op.head).size,
         log_sum_exp = LoopsOf(binder.plan()).Of<T>().LogSumExp](const T* logits_NV, float* lse_N) {
          ParallelRanges(size.rows, RowsPerThread(size.columns), [&](int64_t begin, int64_t end) {
            log_sum_exp(logits_NV + begin * size.columns, end - begin, size.columns, vocabulary, lse_N + begin);
          });
        },
        Resolve<const T>(binder, op.logits), Resolve<float>(binder, op.lse));
  });
}

}  // namespace shardc::cpu
