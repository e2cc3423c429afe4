// cross_entropy_backward, over the logits: (e^(logit - lse) - onehot) / count. A row without a valid target is zero,
// and so is everything where count is 0 (no valid target on any rank): never 0 / 0. A block per row. logits_NV: N rows,
// V vocabulary; targets_N, lse_N.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

constexpr int LogitThreads = 256;

template <class T, int N>
__global__ void __launch_bounds__(LogitThreads)
    GradientsOfLogits(T* logits_NV, const int32_t* targets_N, const float* lse_N, const double* count, int64_t columns,
                      VocabShard vocab, BadIds bad) {
  const int64_t row = BlockX();
  const int32_t id = targets_N[row];
  if (Thread() == 0 && !IsTarget(id, vocab.total)) {
    TellBadId(id, row, bad);
  }
  const float scale = *count > 0 ? static_cast<float>(1.0 / *count) : 0.0F;
  const int64_t size = IsId(id, vocab.total) && scale != 0.0F ? vocab.size : 0;
  const int64_t target = id - vocab.first;
  const float lse = lse_N[row];
  T* const logits_V = logits_NV + row * columns;
  for (int64_t v = Thread() * N; v < columns; v += LogitThreads * N) {
    Floats<N> logits = LoadFloats<N>(logits_V + v);
    UNROLL
    for (int i = 0; i < N; ++i) {
      const float gradient = (expf(logits.at[i] - lse) - (v + i == target ? 1.0F : 0.0F)) * scale;
      logits.at[i] = v + i < size ? gradient : 0.0F;
    }
    StoreFloats(logits_V + v, logits);
  }
}

auto Bind(const op::CrossEntropyBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    CheckSameBytes(binder, op.dlogits, op.logits);
    const VocabShard vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head);
    constexpr int N = PackSize<T>;
    const bool has_packs = HasRowsOfPacks<N>(binder, size.columns, {op.logits});
    return [stream = StreamOf(binder.queue()), dlogits = Resolve<T>(binder, op.dlogits),
            targets = Resolve<const int32_t>(binder, op.targets), lse = Resolve<const float>(binder, op.lse),
            count = Resolve<const double>(binder, op.count), size, vocab, bad = BadIdsOf(binder.queue(), vocab.total),
            kernel = has_packs ? GradientsOfLogits<T, N> : GradientsOfLogits<T, 1>](const Moment& moment) -> Status {
      return Launch(stream, {.grid = {size.rows}, .threads = LogitThreads}, kernel, dlogits.At(moment),
                    targets.At(moment), lse.At(moment), count.At(moment), size.columns, vocab, bad);
    };
  });
}

}  // namespace shardc::cuda
