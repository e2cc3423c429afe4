// Binds attention and its backward to plans of cuDNN, one call for each chunk. Which ops these are is decided by
// compiler/ops/cuda/attention.h.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Requires: CudaAttention(...).by_cudnn().
auto BindSdpa(const op::Attention& op, Binder& binder) -> Kernel;
auto BindSdpa(const op::AttentionBackward& op, Binder& binder) -> Kernel;

}  // namespace shardc::cuda
