// cross_entropy_and_gradient: a block per row finds the log of the sum of exponentials, then writes the loss to scratch
// and the gradients over the logits; a second kernel sums the losses. Between its passes a block keeps the row in
// shared memory. What it has no memory for comes again from the L2 cache: it is the end of the row, which the second
// pass begins with. A row without a target is zero, and is not read. logits_NV: N rows, V vocabulary; targets_N.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/row_losses.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

/// Bytes of a row that a block keeps at most: whole vectors of all threads.
constexpr int64_t MostKeptOfRow = MostDynamicShared;
static_assert(MostKeptOfRow % (int64_t{RowThreads} * 16) == 0);

/// `kept`: the columns that shared memory has.
template <class T, int N>
__global__ void __launch_bounds__(RowThreads)
    LossAndGradientsOfEachRow(T* logits_NV, const int32_t* targets_N, const double* count, int64_t vocabulary,
                              int64_t kept, double* losses_N, BadIds bad) {
  const int64_t row = BlockX();
  T* const logits_V = logits_NV + row * vocabulary;
  const int32_t target = targets_N[row];
  if (!IsId(target, vocabulary)) {
    if (Thread() == 0) {
      if (!IsTarget(target, vocabulary)) {
        TellBadId(target, row, bad);
      }
      losses_N[row] = 0;
    }
    for (int64_t v = Thread() * N; v < vocabulary; v += RowThreads * N) {
      StorePack<N>(logits_V + v, Pack<T, N>{});
    }
    return;
  }
  // A thread reads there what it has stored itself.
  T* const kept_V = DynamicShared<T>();
  const float lse = LogSumExpOfRow<N>(logits_V, vocabulary, [=](int64_t v, const Pack<T, N>& vector) {
    if (v < kept) {
      StorePack<N>(kept_V + v, vector);
    }
  });
  const float scale = *count > 0 ? static_cast<float>(1.0 / *count) : 0.0F;
  const auto write = [=](int64_t v, const Pack<T, N>& vector) {
    const Floats<N> logits = ToFloats(vector);
    Floats<N> gradients;
    UNROLL
    for (int i = 0; i < N; ++i) {
      gradients.at[i] = expf(logits.at[i] - lse);
    }
    if (v <= target && target < v + N) {
      UNROLL
      for (int i = 0; i < N; ++i) {
        if (v + i == target) {
          losses_N[row] = static_cast<double>(lse) - static_cast<double>(logits.at[i]);
          gradients.at[i] -= 1.0F;
        }
      }
    }
    UNROLL
    for (int i = 0; i < N; ++i) {
      gradients.at[i] = scale == 0.0F ? 0.0F : gradients.at[i] * scale;
    }
    StoreFloats(logits_V + v, gradients);
  };
  ForVectorsOfRow<N>(
      kept, vocabulary, [=](int64_t v) { return LoadPack<N>(logits_V + v); }, write);
  ForVectorsOfRow<N>(
      0, kept < vocabulary ? kept : vocabulary, [=](int64_t v) { return LoadPack<N>(kept_V + v); }, write);
}

auto Bind(const op::CrossEntropyAndGradient& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    CheckSameBytes(binder, op.dlogits, op.logits);
    constexpr int N = PackSize<T>;
    constexpr auto ElementBytes = static_cast<int64_t>(sizeof(T));
    const bool has_packs = HasRowsOfPacks<N>(binder, size.columns, {op.logits});
    const int64_t step = RowThreads * (has_packs ? N : 1);
    const int64_t kept = std::min(BlocksFor(size.columns, step) * step, MostKeptOfRow / ElementBytes);
    return [stream = StreamOf(binder.queue()), logits = Resolve<T>(binder, op.dlogits),
            targets = Resolve<const int32_t>(binder, op.targets), count = Resolve<const double>(binder, op.count),
            loss = Resolve<double>(binder, op.loss), losses = ScratchOf<double>(op, binder), size, kept,
            adds = AddsOnto(binder, op.loss, op.loss_onto), bad = BadIdsOf(binder.queue(), size.columns),
            kernel = has_packs ? LossAndGradientsOfEachRow<T, N>
                               : LossAndGradientsOfEachRow<T, 1>](const Moment& moment) -> Status {
      RETURN_IF_ERROR(Launch(stream, {.grid = {size.rows}, .threads = RowThreads, .shared_bytes = kept * ElementBytes},
                             kernel, logits.At(moment), targets.At(moment), count.At(moment), size.columns, kept,
                             losses.At(moment), bad));
      return Launch(stream, {.threads = LossThreads}, SumLosses<double>, losses.At(moment), size.rows, adds,
                    loss.At(moment));
    };
  });
}

}  // namespace shardc::cuda
