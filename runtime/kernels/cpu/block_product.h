// Products on the calling thread alone: brgemm of LibTorch and sgemm of MKL, and which of them this processor has.
#pragma once

#include <cstdint>

#include "compiler/ops/cpu/gemm_cut.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

/// What products are computed with: decided by the plan's device and by what this machine's processor can do.
struct GemmPath {
  const Loops* loops = nullptr;
  /// Block products by brgemm, of f32 and of bf16; by sgemm of f32 (into which bf16 is widened) where false.
  bool brgemm_f32 = false;
  bool brgemm_bf16 = false;
};

auto GemmPathOf(const Plan& plan) -> GemmPath;

/// The product, or that added to c. Strides are elements between rows, as stored.
struct GemmShape {
  GemmProblem problem;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  /// Where false, what c holds is not read.
  bool adds = false;
};

/// Requires: every size fits 31 bits.
auto Sgemm(const GemmShape& shape, const float* a, const float* b, float* c) -> void;

/// c (m x n, f32) = a b, or that added to c, on this thread alone: a and b in the form of loops/pack.cpp. Strides are
/// elements between rows; between terms of b, where these lie in pairs.
struct BlockProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  bool adds = false;

  auto operator==(const BlockProduct&) const -> bool = default;
};

/// Requires for f32: path as GemmPathOf gave it. For bf16: path.brgemm_bf16.
auto Multiply(const GemmPath& path, const BlockProduct& product, const float* a, const float* b, float* c) -> void;
auto Multiply(const GemmPath& path, const BlockProduct& product, const BFloat16* a, const BFloat16* b, float* c)
    -> void;
/// To be called on each thread after a series of bf16 products: other users of the processor's matrix unit may follow.
auto EndProducts(const GemmPath& path) -> void;

}  // namespace shardc
