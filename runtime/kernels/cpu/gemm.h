// Matrix products of row-major matrices, in blocks that are packed for block_product.h. Raw pointers, no views; scratch
// is the caller's.
#pragma once

#include <cstdint>

#include "runtime/kernels/cpu/block_product.h"

namespace shardc {

/// Computes on up to ComputeThreads() threads; sums are of f32, in an order that does not depend on their number.
/// Instances: f32; bf16; bf16 into f32. Requires: `scratch` has GemmSlotFloats for each of `slots`, as gemm_cut.h
/// tells; every size fits 31 bits.
template <class T, class Out>
auto Gemm(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, Out* c, float* scratch, int64_t slots)
    -> void;

/// Creates the per-thread kernels and buffers of this shape (LibTorch's, MKL's) on every thread now, so the first step
/// does not depend on which thread takes which task. Writes to scratch alone.
template <class T, class Out>
auto PrepareGemm(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, float* scratch, int64_t slots)
    -> void;

}  // namespace shardc
