// embedding_backward: scatters rows by token. Threads share the columns, never the tokens: each element of dweight gets
// its terms in token order, whatever the number of threads. dy_NH: N tokens, H hidden; dweight_VH: V vocabulary.
#include <algorithm>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::EmbeddingBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    const Matrix table = AsMatrix(binder.plan(), op.dweight);
    const int64_t num_tokens = binder.ViewOf(op.tokens).num_elements();
    const bool adds = AddsOnto(binder, op.dweight, op.dweight_onto);
    return BindOver(
        [rows = table.rows, hidden = table.columns, num_tokens, vocab = VocabShardOf(binder, op.vocab_axes, table.rows),
         is_cut = op.vocab_axes != AxisSet{}, adds, backward = LoopsOf(binder.plan()).Of<T>().EmbeddingBackward](
            const int32_t* tokens_N, const T* dy_NH, float* dweight_VH) -> Status {
          RETURN_IF_ERROR(CheckTokens(tokens_N, num_tokens, 0, vocab.total));
          if (!adds) {
            std::fill_n(dweight_VH, rows * hidden, 0.0F);
          }
          ParallelRanges(hidden, std::max(LeastColumns, RowsPerThread(num_tokens)), [&](int64_t begin, int64_t end) {
            if (!is_cut) {
              backward(tokens_N, dy_NH, num_tokens, hidden, begin, end, dweight_VH);
              return;
            }
            for (int64_t i = 0; i < num_tokens; ++i) {
              if (vocab.Has(tokens_N[i])) {
                const auto row = static_cast<int32_t>(tokens_N[i] - vocab.first);
                backward(&row, dy_NH + i * hidden, 1, hidden, begin, end, dweight_VH);
              }
            }
          });
          return Success{};
        },
        Resolve<const int32_t>(binder, op.tokens), Resolve<const T>(binder, op.dy), Resolve<float>(binder, op.dweight));
  });
}

}  // namespace shardc::cpu
