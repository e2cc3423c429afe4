// cross_entropy_and_gradient: a block of rows at a time, the log of the sum of exponentials of each row, the loss of
// those with a target in row order, and the gradients over the logits. logits_NV: N rows, V vocabulary; targets_N.
#include <algorithm>
#include <array>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::CrossEntropyAndGradient& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    CheckSameBytes(binder, op.dlogits, op.logits);
    return BindOver(
        [rows = size.rows, vocabulary = size.columns, adds = AddsOnto(binder, op.loss, op.loss_onto),
         &loops = LoopsOf(binder.plan()).Of<T>()](T* logits, const int32_t* targets_N, const double* count,
                                                  double* sum) -> Status {
          RETURN_IF_ERROR(CheckTokens(targets_N, rows, -1, vocabulary));
          const double valid = *count;
          const float scale = valid > 0 ? static_cast<float>(1.0 / valid) : 0.0F;
          // Those of one block.
          std::array<float, 256> lse_N;
          double total = 0;
          for (int64_t first = 0; first < rows; first += std::ssize(lse_N)) {
            const int64_t block = std::min<int64_t>(rows - first, std::ssize(lse_N));
            T* const logits_NV = logits + first * vocabulary;
            ParallelRanges(block, RowsPerThread(vocabulary), [&](int64_t begin, int64_t end) {
              loops.LogSumExp(logits_NV + begin * vocabulary, end - begin, vocabulary, vocabulary,
                              lse_N.data() + begin);
            });
            for (int64_t row = 0; row < block; ++row) {
              if (const int32_t target = targets_N[first + row]; target >= 0) {
                total += static_cast<double>(lse_N[static_cast<size_t>(row)]) -
                         static_cast<double>(Load(logits_NV[row * vocabulary + target]));
              }
            }
            ParallelRanges(block, RowsPerThread(vocabulary), [&](int64_t begin, int64_t end) {
              loops.CrossEntropyBackward(targets_N + first + begin, lse_N.data() + begin, end - begin, vocabulary, 0,
                                         vocabulary, scale, logits_NV + begin * vocabulary);
            });
          }
          *sum = (adds ? *sum : 0) + total;
          return Success{};
        },
        Resolve<T>(binder, op.dlogits), Resolve<const int32_t>(binder, op.targets),
        Resolve<const double>(binder, op.count), Resolve<double>(binder, op.loss));
  });
}

}  // namespace shardc::cpu
