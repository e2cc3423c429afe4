// sharded_cross_entropy: each row's log_sum_exp out of the ranks' parts, in rank order and in f64, a thread per row;
// the losses of targets in this rank's range of the vocabulary go to scratch, and a second kernel sums them. logits_NV:
// N rows, V columns; parts_RN: R ranks; targets_N, lse_N.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/row_losses.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

/// A part is minus infinity where a rank has no column; NaN stays one.
__device__ __forceinline__ auto MergedOf(const float* parts, int64_t ranks, int64_t rows) -> float {
  double greatest = -INFINITY;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    greatest = fmax(greatest, static_cast<double>(parts[rank * rows]));
  }
  double sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    sum += exp(static_cast<double>(parts[rank * rows]) - greatest);
  }
  return static_cast<float>(greatest + log(sum));
}

template <class T>
__global__ void __launch_bounds__(RowThreads)
    LossOfEachRowHere(const T* logits_NV, const int32_t* targets_N, const float* parts_RN, Matrix size, int64_t ranks,
                      VocabShard vocab, float* lse_N, double* losses_N, BadIds bad) {
  const int64_t row = BlockX() * RowThreads + Thread();
  if (row >= size.rows) {
    return;
  }
  const float lse = MergedOf(parts_RN + row, ranks, size.rows);
  const int32_t target = targets_N[row];
  if (!IsTarget(target, vocab.total)) {
    TellBadId(target, row, bad);
  }
  lse_N[row] = lse;
  double loss = 0;
  if (IsHere(target, vocab)) {
    loss = static_cast<double>(lse) - static_cast<double>(Load(logits_NV + row * size.columns + target - vocab.first));
  }
  losses_N[row] = loss;
}

auto Bind(const op::ShardedCrossEntropy& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    const VocabShard vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head);
    return [stream = StreamOf(binder.queue()), logits = Resolve<const T>(binder, op.logits),
            targets = Resolve<const int32_t>(binder, op.targets), parts = Resolve<const float>(binder, op.parts),
            loss = Resolve<double>(binder, op.loss), lse = Resolve<float>(binder, op.lse),
            losses = ScratchOf<double>(op, binder), size, ranks = binder.plan().mesh.size(op.vocab_axes), vocab,
            adds = AddsOnto(binder, op.loss, op.loss_onto),
            bad = BadIdsOf(binder.queue(), vocab.total)](const Moment& moment) -> Status {
      RETURN_IF_ERROR(Launch(stream, {.grid = {BlocksFor(size.rows, RowThreads)}, .threads = RowThreads},
                             LossOfEachRowHere<T>, logits.At(moment), targets.At(moment), parts.At(moment), size, ranks,
                             vocab, lse.At(moment), losses.At(moment), bad));
      return Launch(stream, {.threads = LossThreads}, SumLosses<double>, losses.At(moment), size.rows, adds,
                    loss.At(moment));
    };
  });
}

}  // namespace shardc::cuda
