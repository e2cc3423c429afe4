// embedding: copies a row of the table for each token.
// y_NH: N tokens, H hidden; weight_VH: V vocabulary.
#include <algorithm>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/token_range.h"

namespace shardc {

template <class T>
static auto BindEmbedding(const op::Embedding& op, Binder& binder) -> Kernel {
  const Matrix table = AsMatrix(binder.plan(), op.weight);
  const int64_t num_tokens = binder.ViewOf(op.tokens).num_elements();
  return [tokens = Resolve<const int32_t>(binder, op.tokens), weight = Resolve<const T>(binder, op.weight),
          y = Resolve<T>(binder, op.y), vocabulary = table.rows, hidden = table.columns,
          num_tokens](const Moment& moment) -> Status {
    const int32_t* const token = tokens.At(moment);
    RETURN_IF_ERROR(CheckTokens(token, num_tokens, 0, vocabulary));
    const T* const weight_VH = weight.At(moment);
    T* const y_NH = y.At(moment);
    ParallelRanges(num_tokens, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(weight_VH + token[i] * hidden, hidden, y_NH + i * hidden);
      }
    });
    return Success{};
  };
}

auto Bind(const op::Embedding& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindEmbedding<T>(op, binder); });
}

}  // namespace shardc
