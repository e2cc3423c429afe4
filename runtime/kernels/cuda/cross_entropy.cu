// cross_entropy: the log of the sum of exponentials of each row, and the sum over valid targets of lse -
// logits[target]. A block per row; the losses of rows go to scratch in f64, and a second kernel sums them. logits_NV: N
// rows, V vocabulary; targets_N, lse_N.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/row_losses.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

template <class T, int N>
__global__ void __launch_bounds__(RowThreads)
    LossOfEachRow(const T* logits_NV, const int32_t* targets_N, int64_t vocabulary, float* lse_N, double* losses_N,
                  BadIds bad) {
  const int64_t row = BlockX();
  const T* const logits_V = logits_NV + row * vocabulary;
  const float lse = LogSumExpOfRow<N>(logits_V, vocabulary);
  if (Thread() != 0) {
    return;
  }
  const int32_t target = targets_N[row];
  if (!IsTarget(target, vocabulary)) {
    TellBadId(target, row, bad);
  }
  lse_N[row] = lse;
  losses_N[row] =
      IsId(target, vocabulary) ? static_cast<double>(lse) - static_cast<double>(Load(logits_V + target)) : 0;
}

auto Bind(const op::CrossEntropy& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    constexpr int N = PackSize<T>;
    const bool has_packs = HasRowsOfPacks<N>(binder, size.columns, {op.logits});
    return [stream = StreamOf(binder.queue()), logits = Resolve<const T>(binder, op.logits),
            targets = Resolve<const int32_t>(binder, op.targets), loss = Resolve<double>(binder, op.loss),
            lse = Resolve<float>(binder, op.lse), losses = ScratchOf<double>(op, binder), size,
            adds = AddsOnto(binder, op.loss, op.loss_onto), bad = BadIdsOf(binder.queue(), size.columns),
            kernel = has_packs ? LossOfEachRow<T, N> : LossOfEachRow<T, 1>](const Moment& moment) -> Status {
      RETURN_IF_ERROR(Launch(stream, {.grid = {size.rows}, .threads = RowThreads}, kernel, logits.At(moment),
                             targets.At(moment), size.columns, lse.At(moment), losses.At(moment), bad));
      return Launch(stream, {.threads = LossThreads}, SumLosses<double>, losses.At(moment), size.rows, adds,
                    loss.At(moment));
    };
  });
}

}  // namespace shardc::cuda
