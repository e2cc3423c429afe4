// Causal attention in bf16 as cuDNN computes it on a stream: one plan of the library for each shape, which all ops of
// that shape on a rank share. Raw pointers, no views; the workspace is the caller's.
#pragma once

#include <memory>

#include "compiler/base/error_or.h"
#include "compiler/ops/cpu/attention_scratch.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc::cuda {

enum class SdpaPass : uint8_t { Forward, Backward };

/// One call: some sequences of a batch, and of each some kv heads with the query heads that share them.
struct SdpaShape {
  SdpaPass pass = SdpaPass::Forward;
  /// Sizes of the whole operands, which say how far apart positions and sequences lie.
  AttentionSizes whole;
  int64_t sequences = 0;
  int64_t kv_heads = 0;
  /// The backward gives the same bits in each call.
  bool deterministic = true;
};

/// The first element of the call in each operand; the last four are null in the forward.
struct SdpaOperands {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  /// Results of the forward, operands of the backward.
  void* y = nullptr;
  void* lse = nullptr;
  const void* dy = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

class SdpaPlan {
 public:
  virtual ~SdpaPlan() = default;

  /// Returns the plan of this shape, for the device that the caller's thread uses: one that the thread still holds, or
  /// a new one. Requires: CudaAttention(...).by_cudnn(); lse is contiguous over the call. Errors: InternalFault if the
  /// library refuses the shape. Cost: 0.1 to 1.4 s for a new one.
  static auto Make(const SdpaShape& shape) -> ErrorOr<std::shared_ptr<const SdpaPlan>>;

  /// Returns the version of the library as one number.
  static auto LibraryVersion() -> size_t;

  virtual auto WorkspaceBytes() const -> int64_t = 0;
  /// Launches the kernels.
  virtual auto Run(CUstream_st* stream, const SdpaOperands& operands, void* workspace) const -> Status = 0;
};

}  // namespace shardc::cuda
