// log_sum_exp of this rank's range of the vocabulary. A block per row. logits_NV: N rows, V columns; lse_N.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/row_losses.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cuda {

template <class T, int N>
__global__ void __launch_bounds__(RowThreads)
    LogSumExpOfEachRow(const T* logits_NV, int64_t columns, int64_t vocabulary, float* lse_N) {
  const float lse = LogSumExpOfRow<N>(logits_NV + BlockX() * columns, vocabulary);
  if (Thread() == 0) {
    lse_N[BlockX()] = lse;
  }
}

auto Bind(const op::LogSumExp& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.logits).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.logits);
    const int64_t vocabulary = VocabShardOf(binder, op.vocab_axes, size.columns, op.head).size;
    constexpr int N = PackSize<T>;
    const bool has_packs = HasRowsOfPacks<N>(binder, size.columns, {op.logits}) && vocabulary % N == 0;
    return [stream = StreamOf(binder.queue()), logits = Resolve<const T>(binder, op.logits),
            lse = Resolve<float>(binder, op.lse), size, vocabulary,
            kernel = has_packs ? LogSumExpOfEachRow<T, N> : LogSumExpOfEachRow<T, 1>](const Moment& moment) -> Status {
      return Launch(stream, {.grid = {size.rows}, .threads = RowThreads}, kernel, logits.At(moment), size.columns,
                    vocabulary, lse.At(moment));
    };
  });
}

}  // namespace shardc::cuda
