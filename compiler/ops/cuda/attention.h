// How attention runs on a device of the family Cuda: by cuDNN where it takes the type and the sizes and a sequence is
// one document, and else by plain kernels, which need no scratch. Part of the plan's meaning: the scratch buffers have
// these sizes, and bits depend on the choice.
//
// The deterministic backward of cuDNN keeps a matrix of S x S scores for each query head. Chunks bound what they take
// together: some sequences at once, or one sequence and some of its kv heads. The other backward adds to dq in f32 by
// atomics, in an order that changes from run to run, and takes everything at once. Source of the sizes: what cuDNN 9.19
// tells for its plans on an H100, equal for 24 shapes of the deterministic backward with sequences of 2 to 8192, heads
// of 8 to 256, shared keys or not, and for 6 of the other.
#pragma once

#include "compiler/ops/cpu/attention_scratch.h"

namespace shardc {

class CudaAttention {
 public:
  /// Requires: `dtype` is that of queries, keys and values. `most_workspace` is what the scores of a call of the
  /// deterministic backward take at most, unless those of the least chunk take more: of one kv head, or of a few if
  /// their queries are odd in number. `has_starts`: the op has a value that says where documents begin.
  CudaAttention(const AttentionSizes& sizes, DType dtype, Bytes most_workspace, bool deterministic = true,
                bool has_starts = false);

  auto by_cudnn() const -> bool { return by_cudnn_; }
  /// Returns the sequences that a call of the backward takes, which divide the batch. Chunks run one after another in
  /// the same scratch.
  auto chunk_sequences() const -> int64_t { return chunk_sequences_; }
  /// Returns the kv heads of each of these sequences that a call takes, with the query heads that share them; they
  /// divide those of the op.
  auto chunk_kv_heads() const -> int64_t { return chunk_kv_heads_; }

  /// Returns the calls that a backward takes, one for each chunk.
  auto backward_calls() const -> int64_t {
    return sizes_.batch / chunk_sequences_ * (sizes_.kv_heads / chunk_kv_heads_);
  }

  auto forward_scratch() const -> Bytes;
  auto backward_scratch() const -> Bytes;

 private:
  auto BytesOfScores(int64_t sequences, int64_t kv_heads) const -> int64_t;

  AttentionSizes sizes_;
  bool by_cudnn_ = false;
  bool deterministic_ = true;
  int64_t chunk_sequences_ = 0;
  int64_t chunk_kv_heads_ = 0;
};

/// Returns the cut of attention over these operands, within the plan's bound.
auto CudaAttentionOf(const Plan& plan, ValueId q, ValueId k, ValueId starts, int64_t head_dim) -> CudaAttention;

/// Returns true if an op of the plan adds in an order that changes from run to run.
auto AddsInAnyOrder(const Plan& plan) -> bool;

}  // namespace shardc
