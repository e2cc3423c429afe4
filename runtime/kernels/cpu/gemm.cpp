// Gemm by the Fortran sgemm that LibTorch's CPU library exports (MKL in the x86 builds). Fortran matrices are
// column-major: a row-major c = a b is its c^T = b^T a^T, so the operands swap and nothing is copied.
#include "runtime/kernels/cpu/gemm.h"

#include <limits>

#include "compiler/base/check.h"
#include "runtime/kernels/cpu/parallel.h"

extern "C" {
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);
// Threads that MKL uses for calls from this thread; returns the number before.
int MKL_Set_Num_Threads_Local(int threads);
}

namespace shardc {

static thread_local bool serial = false;

// MKL's setting is one a thread, and ranks may be threads of one process: each thread takes it over when it computes.
static auto UseThreads(int threads) -> void {
  static thread_local int in_use = 0;
  if (threads != in_use) {
    MKL_Set_Num_Threads_Local(threads);
    in_use = threads;
  }
}

static auto ToInt(int64_t size) -> int {
  CHECK(size >= 0 && size <= std::numeric_limits<int>::max(), "a matrix size of {}", size);
  return static_cast<int>(size);
}

auto Gemm(const GemmShape& shape, const float* a, const float* b, float* c) -> void {
  UseThreads(serial ? 1 : static_cast<int>(ComputeThreads()));
  const char transpose_a = shape.transpose_a ? 'T' : 'N';
  const char transpose_b = shape.transpose_b ? 'T' : 'N';
  const int m = ToInt(shape.m);
  const int n = ToInt(shape.n);
  const int k = ToInt(shape.k);
  const int stride_a = ToInt(shape.stride_a);
  const int stride_b = ToInt(shape.stride_b);
  const int stride_c = ToInt(shape.stride_c);
  sgemm_(&transpose_b, &transpose_a, &n, &m, &k, &shape.alpha, b, &stride_b, a, &stride_a, &shape.beta, c, &stride_c);
}

SerialGemm::SerialGemm() { serial = true; }
SerialGemm::~SerialGemm() { serial = false; }

}  // namespace shardc
