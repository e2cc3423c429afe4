#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

auto ToBFloat16(const float* x_N, int64_t n, BFloat16* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    Store(y_N[i], x_N[i]);
  }
}

auto ToFloat32(const BFloat16* x_N, int64_t n, float* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    y_N[i] = Load(x_N[i]);
  }
}

template <class T>
auto Add(const T* a_N, int64_t n, T* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    Store(y_N[i], Load(a_N[i]) + Load(y_N[i]));
  }
}
INSTANTIATE_ELEMENT_LOOP(Add)

template <class T>
auto Scale(float factor, int64_t n, T* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    Store(y_N[i], factor * Load(y_N[i]));
  }
}
INSTANTIATE_ELEMENT_LOOP(Scale)

template <class T, class R>
auto ResidualAdd(const R* x_N, const T* branch_N, int64_t n, R* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    Store(y_N[i], Load(x_N[i]) + Load(branch_N[i]));
  }
}
INSTANTIATE_RESIDUAL_LOOP(ResidualAdd)

}  // namespace shardc::SHARDC_LOOPS
