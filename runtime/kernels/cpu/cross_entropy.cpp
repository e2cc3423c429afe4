// cross_entropy: the log of the sum of exponentials of each row, and the sum over valid targets of lse -
// logits[target]. Rows in parallel; the loss is summed afterwards, in row order, in f64. logits_NV: N rows, V
// vocabulary; targets_N, lse_N.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::CrossEntropy& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    const bool adds = AddsOnto(binder, op.loss, op.loss_onto);
    return BindOver(
        [rows = size.rows, vocabulary = size.columns, adds, log_sum_exp = LoopsOf(binder.plan()).Of<T>().LogSumExp](
            const T* logits_NV, const int32_t* targets_N, double* sum, float* lse_N) -> Status {
          RETURN_IF_ERROR(CheckTokens(targets_N, rows, -1, vocabulary));
          ParallelRanges(rows, RowsPerThread(vocabulary), [&](int64_t begin, int64_t end) {
            log_sum_exp(logits_NV + begin * vocabulary, end - begin, vocabulary, vocabulary, lse_N + begin);
          });
          double total = 0;
          for (int64_t row = 0; row < rows; ++row) {
            if (targets_N[row] >= 0) {
              total += static_cast<double>(lse_N[row]) -
                       static_cast<double>(Load(logits_NV[row * vocabulary + targets_N[row]]));
            }
          }
          *sum = (adds ? *sum : 0) + total;
          return Success{};
        },
        Resolve<const T>(binder, op.logits), Resolve<const int32_t>(binder, op.targets),
        Resolve<double>(binder, op.loss), Resolve<float>(binder, op.lse));
  });
}

}  // namespace shardc::cpu
