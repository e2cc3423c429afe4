// embedding: copies a row of the table for each token, or zeros where it lies on another rank. A warp copies a row.
// y_NH: N tokens, H hidden; weight_VH: V vocabulary.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

constexpr int EmbeddingThreads = 256;
constexpr int EmbeddingRowsPerBlock = EmbeddingThreads / WarpSize;

template <class T, class R, int N>
__global__ void __launch_bounds__(EmbeddingThreads)
    CopyEmbeddings(const int32_t* tokens_N, const T* weight_VH, int64_t num_tokens, int64_t hidden, VocabShard vocab,
                   R* y_NH, BadIds bad) {
  const int64_t position = BlockX() * EmbeddingRowsPerBlock + Warp();
  if (position >= num_tokens) {
    return;
  }
  const int32_t id = tokens_N[position];
  if (!IsId(id, vocab.total) && Lane() == 0) {
    TellBadId(id, position, bad);
  }
  const bool is_here = IsHere(id, vocab);
  const T* const weight_H = weight_VH + (is_here ? id - vocab.first : 0) * hidden;
  for (int64_t h = Lane() * N; h < hidden; h += WarpSize * N) {
    StoreFloats(y_NH + position * hidden + h, is_here ? LoadFloats<N>(weight_H + h) : Floats<N>{});
  }
}

auto Bind(const op::Embedding& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.y).dtype, [&]<class T, class R>() -> Kernel {
    const Matrix table = AsMatrix(binder.plan(), op.weight);
    const VocabShard vocab = VocabShardOf(binder, op.vocab_axes, table.rows);
    constexpr int N = PackSize<T, R>;
    const bool has_packs = HasRowsOfPacks<N>(binder, table.columns, {op.weight, op.y});
    return [stream = StreamOf(binder.queue()), tokens = Resolve<const int32_t>(binder, op.tokens),
            weight = Resolve<const T>(binder, op.weight), y = Resolve<R>(binder, op.y), vocab, hidden = table.columns,
            num_tokens = binder.ViewOf(op.tokens).num_elements(), bad = BadIdsOf(binder.queue(), vocab.total),
            kernel = has_packs ? CopyEmbeddings<T, R, N> : CopyEmbeddings<T, R, 1>](const Moment& moment) -> Status {
      return Launch(stream, {.grid = {BlocksFor(num_tokens, EmbeddingRowsPerBlock)}, .threads = EmbeddingThreads},
                    kernel, tokens.At(moment), weight.At(moment), num_tokens, hidden, vocab, y.At(moment), bad);
    };
  });
}

}  // namespace shardc::cuda
