#include "compiler/ops/cuda/attention.h"

#include "compiler/base/check.h"
#include "compiler/ops/op_support.h"

namespace shardc {

/// The least scratch that cuDNN's calls are given.
static constexpr int64_t LeastWorkspace = 256;
/// The backward keeps the gradients of scores, in bf16, in tiles of so many queries and keys.
static constexpr int64_t QueryTile = 64;
static constexpr int64_t KeyTile = 128;
/// Shorter sequences take plain kernels, which have no tiles to fill. cuDNN refuses sequences of 1 position.
static constexpr int64_t LeastSequence = 64;

/// The gradients of keys and values of each query head begin at multiples of so many bytes.
static constexpr int64_t GradientAlignment = 128;
/// cuDNN takes operands at multiples of 16 bytes, among them a float for each query.
static constexpr int64_t FloatsOfAlignment = 4;

/// Returns the greatest divisor of `count` for which `fits` holds, or else the least, of those that are `count` itself
/// or make chunks of a whole number of aligned places: of `floats` floats for each of the `count`.
template <class Fits>
static auto ChunkOf(int64_t count, int64_t floats, const Fits& fits) -> int64_t {
  int64_t least = count;
  for (int64_t divisor = count; divisor > 0; --divisor) {
    if (count % divisor == 0 && (divisor == count || divisor * floats % FloatsOfAlignment == 0)) {
      if (fits(divisor)) {
        return divisor;
      }
      least = divisor;
    }
  }
  return least;
}

CudaAttention::CudaAttention(const AttentionSizes& sizes, DType dtype, Bytes most_workspace, bool deterministic,
                             bool has_starts)
    : sizes_(sizes),
      by_cudnn_(!has_starts && dtype == DType::BF16 && sizes.head_dim % 8 == 0 && sizes.head_dim <= 128 &&
                sizes.sequence >= LeastSequence),
      deterministic_(deterministic),
      chunk_sequences_(ChunkOf(sizes.batch, sizes.heads * sizes.sequence,
                               [&](int64_t n) { return BytesOfScores(n, sizes.kv_heads) <= most_workspace.value; })),
      // A call takes some of the kv heads of one sequence alone.
      chunk_kv_heads_(chunk_sequences_ > 1
                          ? sizes.kv_heads
                          : ChunkOf(sizes.kv_heads, sizes.heads_per_kv() * sizes.sequence,
                                    [&](int64_t n) { return BytesOfScores(1, n) <= most_workspace.value; })) {}

auto CudaAttention::BytesOfScores(int64_t sequences, int64_t kv_heads) const -> int64_t {
  const int64_t of_head = RoundUp(sizes_.sequence, QueryTile) * RoundUp(sizes_.sequence, KeyTile);
  return deterministic_ ? SizeOf(DType::BF16) * sequences * kv_heads * sizes_.heads_per_kv() * of_head : 0;
}

auto CudaAttention::forward_scratch() const -> Bytes { return Bytes{by_cudnn_ ? LeastWorkspace : 0}; }

/// Adds up the scores, or dq in f32; a float per query for the sum of dy y; and where query heads share keys, dk and dv
/// of each query head in bf16.
auto CudaAttention::backward_scratch() const -> Bytes {
  if (!by_cudnn_) {
    return {};
  }
  const int64_t queries = chunk_sequences_ * chunk_kv_heads_ * sizes_.heads_per_kv() * sizes_.sequence;
  const int64_t of_query_heads =
      sizes_.heads_per_kv() > 1 ? 2 * RoundUp(SizeOf(DType::BF16) * queries * sizes_.head_dim, GradientAlignment) : 0;
  const int64_t of_dq = deterministic_ ? 0 : SizeOf(DType::F32) * queries * sizes_.head_dim;
  return Bytes{LeastWorkspace + SizeOf(DType::F32) * queries + of_dq + of_query_heads +
               BytesOfScores(chunk_sequences_, chunk_kv_heads_)};
}

auto CudaAttentionOf(const Plan& plan, ValueId q, ValueId k, ValueId starts, int64_t head_dim) -> CudaAttention {
  return {AttentionSizesOf(plan, q, k, head_dim), plan.values[q].dtype, Bytes{plan.run.attention_workspace},
          plan.run.deterministic, starts.valid()};
}

auto AddsInAnyOrder(const Plan& plan) -> bool {
  const auto does = [&](const Op& op) {
    const auto* backward = std::get_if<op::AttentionBackward>(&op.body);
    return backward != nullptr &&
           CudaAttentionOf(plan, backward->q, backward->k, backward->starts, backward->head_dim).by_cudnn();
  };
  return !plan.run.deterministic && FactsOf(plan.device).family == DeviceFamily::Cuda &&
         std::ranges::any_of(plan.section(SectionKind::Step).ops, does);
}

}  // namespace shardc
