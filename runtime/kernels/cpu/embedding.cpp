// embedding: copies a row of the table for each token, or zeros where it lies on another rank. y_NH: N tokens, H
// hidden; weight_VH: V vocabulary.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cpu {

auto Bind(const op::Embedding& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.y).dtype, [&]<class T, class R>() -> Kernel {
    const Matrix table = AsMatrix(binder.plan(), op.weight);
    const int64_t num_tokens = binder.ViewOf(op.tokens).num_elements();
    return BindOver(
        [vocab = VocabShardOf(binder, op.vocab_axes, table.rows), is_cut = op.vocab_axes != AxisSet{},
         hidden = table.columns, num_tokens, embedding = LoopsOf(binder.plan()).Of<T, R>().Embedding](
            const int32_t* tokens_N, const T* weight_VH, R* y_NH) -> Status {
          RETURN_IF_ERROR(CheckTokens(tokens_N, num_tokens, 0, vocab.total));
          ParallelRanges(num_tokens, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
            if (!is_cut) {
              embedding(tokens_N + begin, weight_VH, end - begin, hidden, y_NH + begin * hidden);
              return;
            }
            for (int64_t i = begin; i < end; ++i) {
              if (vocab.Has(tokens_N[i])) {
                const auto row = static_cast<int32_t>(tokens_N[i] - vocab.first);
                embedding(&row, weight_VH, 1, hidden, y_NH + i * hidden);
              } else {
                std::fill_n(y_NH + i * hidden, hidden, R{});
              }
            }
          });
          return Success{};
        },
        Resolve<const int32_t>(binder, op.tokens), Resolve<const T>(binder, op.weight), Resolve<R>(binder, op.y));
  });
}

}  // namespace shardc::cpu
