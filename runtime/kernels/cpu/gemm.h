// Matrix products of row-major matrices, through the BLAS inside LibTorch: raw pointers, no views, no allocation of
// ours.
#pragma once

#include <cstdint>

namespace shardc {

/// c (m x n) = alpha op(a) op(b) + beta c, with op(a) m x k and op(b) k x n. Strides are elements between rows, as
/// stored.
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  float alpha = 1;
  /// 0: what c holds is not read.
  float beta = 0;
};

/// Computes on ComputeThreads() threads; on one inside SerialGemm. Requires: every size fits 31 bits.
auto Gemm(const GemmShape& shape, const float* a, const float* b, float* c) -> void;

/// While it lives, Gemm on this thread uses this thread alone: for tiles, whose parallel loop is outside. Does not
/// nest.
class SerialGemm {
 public:
  SerialGemm();
  ~SerialGemm();
  SerialGemm(const SerialGemm&) = delete;
  auto operator=(const SerialGemm&) -> SerialGemm& = delete;
};

}  // namespace shardc
