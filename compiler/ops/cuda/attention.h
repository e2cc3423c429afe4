// How attention runs on a device of the family Cuda: by cuDNN where it takes the type and the sizes, and else by plain
// kernels, which need no scratch. Part of the plan's meaning: the scratch buffers have these sizes, and bits depend on
// the choice.
#pragma once

#include "compiler/ops/cpu/attention_scratch.h"

namespace shardc {

class CudaAttention {
 public:
  /// `dtype`: that of queries, keys and values.
  CudaAttention(const AttentionSizes& sizes, DType dtype);

  auto by_cudnn() const -> bool { return by_cudnn_; }
  /// A call of the backward takes so many sequences, and of each so many kv heads with the query heads that share them:
  /// each divides what the op has of it. Chunks run one after another in the same scratch.
  auto chunk_sequences() const -> int64_t { return chunk_sequences_; }
  auto chunk_kv_heads() const -> int64_t { return chunk_kv_heads_; }

  auto forward_scratch() const -> Bytes;
  auto backward_scratch() const -> Bytes;

 private:
  /// The workspace of a deterministic backward, as cuDNN tells it (9.19 to 9.26).
  auto BackwardWorkspace(int64_t sequences, int64_t kv_heads) const -> int64_t;

  AttentionSizes sizes_;
  bool by_cudnn_ = false;
  int64_t chunk_sequences_ = 0;
  int64_t chunk_kv_heads_ = 0;
};

}  // namespace shardc
