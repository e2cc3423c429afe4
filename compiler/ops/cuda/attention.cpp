#include "compiler/ops/cuda/attention.h"

#include "compiler/base/check.h"

namespace shardc {

/// The least scratch that cuDNN's calls are given.
static constexpr int64_t LeastWorkspace = 256;
/// Chunks are cut so that a call of the backward needs no more than this.
static constexpr int64_t MostWorkspace = int64_t{2} << 30;
/// cuDNN computes scores in tiles of so many rows and columns.
static constexpr int64_t Tile = 128;

/// The greatest divisor of `count`, from `count` down, for which `fits` holds; 1 where it holds for none.
template <class Fits>
static auto GreatestDivisor(int64_t count, const Fits& fits) -> int64_t {
  for (int64_t divisor = count; divisor > 1; --divisor) {
    if (count % divisor == 0 && fits(divisor)) {
      return divisor;
    }
  }
  return 1;
}

CudaAttention::CudaAttention(const AttentionSizes& sizes, DType dtype)
    : sizes_(sizes),
      by_cudnn_(dtype == DType::BF16 && sizes.head_dim % 8 == 0 && sizes.head_dim <= 128),
      chunk_sequences_(GreatestDivisor(
          sizes.batch, [&](int64_t n) { return BackwardWorkspace(n, sizes.kv_heads) <= MostWorkspace; })),
      chunk_kv_heads_(GreatestDivisor(
          sizes.kv_heads, [&](int64_t n) { return BackwardWorkspace(chunk_sequences_, n) <= MostWorkspace; })) {}

auto CudaAttention::BackwardWorkspace(int64_t sequences, int64_t kv_heads) const -> int64_t {
  const int64_t heads = sequences * kv_heads * sizes_.heads_per_kv();
  const int64_t rows = RoundUp(sizes_.sequence, Tile);
  const int64_t shared = sizes_.heads_per_kv() > 1 ? 4 * heads * sizes_.sequence * sizes_.head_dim : 0;
  return 2 * heads * rows * rows + 4 * heads * rows + shared + LeastWorkspace;
}

auto CudaAttention::forward_scratch() const -> Bytes { return Bytes{by_cudnn_ ? LeastWorkspace : 0}; }

auto CudaAttention::backward_scratch() const -> Bytes {
  return Bytes{by_cudnn_ ? BackwardWorkspace(chunk_sequences_, chunk_kv_heads_) : 0};
}

}  // namespace shardc
