// embedding_backward: adds rows by token. A block owns 128 columns of the rows of one bucket (row mod 32) and walks all
// positions in order, so that each element of dweight has one owner, which adds its terms in the order of the CPU: the
// bits are the CPU's. dy_NH: N tokens, H hidden; dweight_VH: V vocabulary.
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/token_ids.h"

namespace shardc::cuda {

constexpr int BucketThreads = 128;
constexpr int NumBuckets = 32;

template <class T>
__global__ void __launch_bounds__(BucketThreads)
    AddEmbeddingGradients(const int32_t* tokens_N, const T* dy_NH, int64_t num_tokens, int64_t rows, int64_t hidden,
                          VocabShard vocab, bool adds, float* dweight_VH, BadIds bad) {
  const int64_t bucket = BlockX();
  const int64_t h = BlockY() * BucketThreads + Thread();
  // A thread without a column votes with its warp.
  const bool has_column = h < hidden;
  if (!adds && has_column) {
    for (int64_t row = bucket; row < rows; row += NumBuckets) {
      dweight_VH[row * hidden + h] = 0.0F;
    }
  }
  const bool tells = bucket == 0 && BlockY() == 0 && Warp() == 0;
  for (int64_t begin = 0; begin < num_tokens; begin += WarpSize) {
    const int64_t position = begin + Lane();
    const int32_t id = position < num_tokens ? tokens_N[position] : 0;
    if (tells && !IsId(id, vocab.total)) {
      TellBadId(id, position, bad);
    }
    const auto row = static_cast<int>(id - vocab.first);
    const bool is_mine = position < num_tokens && IsHere(id, vocab) && row % NumBuckets == bucket;
    for (unsigned mine = __ballot_sync(~0U, is_mine); mine != 0; mine &= mine - 1) {
      const int lane = __ffs(static_cast<int>(mine)) - 1;
      const int64_t of_lane = __shfl_sync(~0U, row, lane);
      if (has_column) {
        dweight_VH[of_lane * hidden + h] += Load(dy_NH + (begin + lane) * hidden + h);
      }
    }
  }
}

auto Bind(const op::EmbeddingBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    const Matrix table = AsMatrix(binder.plan(), op.dweight);
    const VocabShard vocab = VocabShardOf(binder, op.vocab_axes, table.rows);
    return [stream = StreamOf(binder.queue()), tokens = Resolve<const int32_t>(binder, op.tokens),
            dy = Resolve<const T>(binder, op.dy), dweight = Resolve<float>(binder, op.dweight), rows = table.rows,
            hidden = table.columns, num_tokens = binder.ViewOf(op.tokens).num_elements(), vocab,
            adds = AddsOnto(binder, op.dweight, op.dweight_onto),
            bad = BadIdsOf(binder.queue(), vocab.total)](const Moment& moment) -> Status {
      return Launch(stream, {.grid = {NumBuckets, BlocksFor(hidden, BucketThreads)}, .threads = BucketThreads},
                    AddEmbeddingGradients<T>, tokens.At(moment), dy.At(moment), num_tokens, rows, hidden, vocab, adds,
                    dweight.At(moment), bad);
    };
  });
}

}  // namespace shardc::cuda
