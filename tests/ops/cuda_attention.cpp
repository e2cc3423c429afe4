// How attention is cut on a device of the family Cuda, against what cuDNN tells of its own plans.
#include "compiler/ops/cuda/attention.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace shardc {

static auto SizesOf(int64_t batch, int64_t heads, int64_t kv_heads, int64_t sequence, int64_t head_dim)
    -> AttentionSizes {
  return {.batch = batch, .heads = heads, .kv_heads = kv_heads, .sequence = sequence, .head_dim = head_dim};
}

constexpr Bytes Unbounded{int64_t{1} << 50};

// Workspaces of deterministic backwards, as cuDNN 9.19 tells them for an H100.
TEST(CudaAttention, BackwardScratchEqualsCudnns) {
  const std::vector<std::pair<AttentionSizes, int64_t>> told = {
      {SizesOf(8, 16, 16, 2048, 128), 1074790656}, {SizesOf(1, 32, 8, 8192, 128), 4430233856},
      {SizesOf(16, 12, 12, 1024, 64), 403439872},  {SizesOf(8, 4, 2, 256, 32), 5275904},
      {SizesOf(1, 4, 1, 8192, 128), 553779456},    {SizesOf(3, 4, 2, 200, 32), 1889920},
      {SizesOf(1, 4, 4, 64, 32), 66816},           {SizesOf(1, 4, 2, 128, 128), 395520},
      {SizesOf(3, 4, 2, 65, 32), 496432},          {SizesOf(1, 8, 2, 545, 16), 6194976},
      {SizesOf(2, 4, 2, 256, 80), 1712384},        {SizesOf(2, 4, 4, 256, 96), 1057024},
      {SizesOf(3, 4, 2, 65, 40), 521520},          {SizesOf(1, 6, 2, 1022, 40), 13588944},
      {SizesOf(1, 9, 3, 2047, 96), 82645980},      {SizesOf(1, 3, 1, 1023, 80), 7286260}};
  for (const auto& [sizes, bytes] : told) {
    const CudaAttention attention(sizes, DType::BF16, Unbounded);
    EXPECT_EQ(attention.backward_scratch().value, bytes) << sizes.sequence << " x " << sizes.head_dim;
    EXPECT_EQ(attention.forward_scratch().value, 256);
  }
}

// Workspaces of backwards by atomics, as cuDNN 9.19 tells them for an H100: a float per query, dq in f32, and dk and dv
// of each query head if heads share keys.
TEST(CudaAttention, BackwardByAtomicsKeepsNoScores) {
  const std::vector<std::pair<AttentionSizes, int64_t>> told = {
      {SizesOf(8, 16, 16, 2048, 128), 135266560}, {SizesOf(1, 32, 8, 8192, 128), 269484288},
      {SizesOf(16, 12, 12, 1024, 64), 51118336},  {SizesOf(3, 6, 3, 200, 32), 936256},
      {SizesOf(1, 4, 4, 64, 32), 34048},          {SizesOf(2, 4, 2, 65, 80), 335136},
      {SizesOf(3, 4, 2, 65, 40), 253104}};
  for (const auto& [sizes, bytes] : told) {
    const CudaAttention attention(sizes, DType::BF16, Bytes{}, /*deterministic=*/false);
    EXPECT_EQ(attention.backward_scratch().value, bytes) << sizes.sequence << " x " << sizes.head_dim;
    // There is nothing to bound: one call takes all.
    EXPECT_EQ(attention.chunk_sequences(), sizes.batch);
    EXPECT_EQ(attention.chunk_kv_heads(), sizes.kv_heads);
  }
}

TEST(CudaAttention, ScoresStayWithinTheBound) {
  constexpr Bytes Bound{int64_t{2} << 30};
  // Scores of all heads take 4 GiB; of half of the kv heads 2 GiB.
  const CudaAttention one_sequence(SizesOf(1, 32, 8, 8192, 128), DType::BF16, Bound);
  EXPECT_EQ(one_sequence.chunk_sequences(), 1);
  EXPECT_EQ(one_sequence.chunk_kv_heads(), 4);
  // 24 sequences of 128 MiB: the greatest divisor of 24 that stays within 16.
  const CudaAttention many(SizesOf(24, 16, 16, 2048, 128), DType::BF16, Bound);
  EXPECT_EQ(many.chunk_sequences(), 12);
  EXPECT_EQ(many.chunk_kv_heads(), 16);
  // No chunk is smaller than one kv head of one sequence.
  const CudaAttention least(SizesOf(4, 8, 2, 2048, 128), DType::BF16, Bytes{});
  EXPECT_EQ(least.chunk_sequences(), 1);
  EXPECT_EQ(least.chunk_kv_heads(), 1);
}

// A chunk begins at a multiple of 16 bytes in each operand, the float of each query too.
TEST(CudaAttention, ChunksBeginAligned) {
  // One kv head has 2 x 1025 queries.
  const CudaAttention heads(SizesOf(4, 4, 2, 1025, 16), DType::BF16, Bytes{});
  EXPECT_EQ(heads.chunk_sequences(), 1);
  EXPECT_EQ(heads.chunk_kv_heads(), 2);
  // One sequence has 3 x 65 queries, and four of them as many as a multiple of 4.
  const CudaAttention sequences(SizesOf(12, 3, 3, 65, 16), DType::BF16, Bytes{});
  EXPECT_EQ(sequences.chunk_sequences(), 4);
  EXPECT_EQ(sequences.chunk_kv_heads(), 3);
  const CudaAttention all(SizesOf(3, 3, 3, 65, 16), DType::BF16, Bytes{});
  EXPECT_EQ(all.chunk_sequences(), 3);
}

TEST(CudaAttention, PlainKernelsTakeTheRest) {
  const auto by_cudnn = [](const AttentionSizes& sizes, DType dtype, bool has_starts = false) {
    const CudaAttention attention(sizes, dtype, Unbounded, /*deterministic=*/true, has_starts);
    EXPECT_EQ(attention.backward_scratch() > Bytes{}, attention.by_cudnn());
    return attention.by_cudnn();
  };
  EXPECT_TRUE(by_cudnn(SizesOf(1, 4, 2, 64, 128), DType::BF16));
  EXPECT_FALSE(by_cudnn(SizesOf(1, 4, 2, 64, 128), DType::F32));
  EXPECT_FALSE(by_cudnn(SizesOf(1, 4, 2, 63, 128), DType::BF16));
  EXPECT_FALSE(by_cudnn(SizesOf(1, 4, 2, 64, 12), DType::BF16));
  EXPECT_FALSE(by_cudnn(SizesOf(1, 4, 2, 64, 136), DType::BF16));
  EXPECT_FALSE(by_cudnn(SizesOf(1, 4, 2, 64, 128), DType::BF16, /*has_starts=*/true));
}

}  // namespace shardc
