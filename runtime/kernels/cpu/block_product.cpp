#include "runtime/kernels/cpu/block_product.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "compiler/base/check.h"
#include "runtime/kernels/machine/device.h"

extern "C" {
// Fortran: column-major.
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);
// Threads that MKL uses for calls from this thread; returns the number before.
int MKL_Set_Num_Threads_Local(int threads);
}

namespace shardc {

// MKL's setting is one a thread. The threads that share a product are ours, and each calls MKL for a part of it.
static auto UseOneThread() -> void {
  static thread_local bool is_set = false;
  if (!is_set) {
    MKL_Set_Num_Threads_Local(1);
    is_set = true;
  }
}

static auto ToInt(int64_t size) -> int {
  CHECK(size >= 0 && size <= std::numeric_limits<int>::max(), "a matrix size of {}", size);
  return static_cast<int>(size);
}

// A row-major c = a b is its column-major c^T = b^T a^T: the operands swap and nothing is copied.
auto Sgemm(const GemmShape& shape, const float* a, const float* b, float* c) -> void {
  UseOneThread();
  const char transpose_a = shape.problem.transpose_a ? 'T' : 'N';
  const char transpose_b = shape.problem.transpose_b ? 'T' : 'N';
  const int m = ToInt(shape.problem.m);
  const int n = ToInt(shape.problem.n);
  const int k = ToInt(shape.problem.k);
  const int stride_a = ToInt(shape.stride_a);
  const int stride_b = ToInt(shape.stride_b);
  const int stride_c = ToInt(shape.stride_c);
  const float alpha = 1;
  const float beta = shape.adds ? 1 : 0;
  sgemm_(&transpose_b, &transpose_a, &n, &m, &k, &alpha, b, &stride_b, a, &stride_a, &beta, c, &stride_c);
}

static auto Brgemm(const BlockProduct& product, const float* a, const float* b, float* c) -> void {
  at::native::cpublas::brgemm(product.m, product.n, product.k, product.stride_a, product.stride_b, product.stride_c,
                              product.adds, a, b, c, false);
}

/// An odd k counts the zero after it.
static auto Brgemm(const BlockProduct& product, const BFloat16* a, const BFloat16* b, float* c) -> void {
  at::native::cpublas::brgemm(product.m, product.n, RoundUp(product.k, 2), product.stride_a, product.stride_b,
                              product.stride_c, product.adds, reinterpret_cast<const at::BFloat16*>(a),
                              reinterpret_cast<const at::BFloat16*>(b), c, true);
}

/// Whether brgemm works here: it throws where the processor lacks what it needs.
template <class T>
static auto Works() -> bool {
  constexpr int64_t Size = 16;
  std::array<T, Size * Size> ones;
  for (T& element : ones) {
    Store(element, 1);
  }
  std::array<float, Size * Size> sums{};
  try {
    Brgemm({.m = Size, .n = Size, .k = Size, .stride_a = Size, .stride_b = Size, .stride_c = Size}, ones.data(),
           ones.data(), sums.data());
    at::native::cpublas::brgemm_release(true);
  } catch (const std::exception&) {
    return false;
  }
  return std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == Size; });
}

auto GemmPathOf(const Plan& plan) -> GemmPath {
  const Loops& loops = LoopsOf(plan);
  if (&loops != &Avx512Loops) {
    return {.loops = &loops};
  }
  static const bool f32 = Works<float>();
  static const bool bf16 = Works<BFloat16>();
  return {.loops = &loops, .brgemm_f32 = f32, .brgemm_bf16 = bf16};
}

auto Multiply(const GemmPath& path, const BlockProduct& product, const float* a, const float* b, float* c) -> void {
  if (path.brgemm_f32) {
    Brgemm(product, a, b, c);
    return;
  }
  Sgemm({.problem = {.m = product.m, .n = product.n, .k = product.k},
         .stride_a = product.stride_a,
         .stride_b = product.stride_b,
         .stride_c = product.stride_c,
         .adds = product.adds},
        a, b, c);
}

auto Multiply(const GemmPath& path, const BlockProduct& product, const BFloat16* a, const BFloat16* b, float* c)
    -> void {
  CHECK(path.brgemm_bf16, "a product of bf16 without the instructions for it");
  Brgemm(product, a, b, c);
}

auto EndProducts(const GemmPath& path) -> void {
  if (path.brgemm_bf16) {
    at::native::cpublas::brgemm_release(true);
  }
}

}  // namespace shardc
