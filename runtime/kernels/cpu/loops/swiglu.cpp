// Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 5.
#include "runtime/kernels/cpu/loops/exponential.h"
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

template <class T>
auto Swiglu(const T* gate_N, const T* up_N, int64_t n, T* y_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = Load(gate_N[i]);
    Store(y_N[i], g * Sigmoid(g) * Load(up_N[i]));
  }
}
INSTANTIATE_ELEMENT_LOOP(Swiglu)

/// The gradients are written over gate and up.
template <class T>
auto SwigluBackward(const T* dy_N, int64_t n, T* gate_N, T* up_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = Load(gate_N[i]);
    const float u = Load(up_N[i]);
    const float d = Load(dy_N[i]);
    const float s = Sigmoid(g);
    Store(gate_N[i], d * u * (s * (1.0F + g * (1.0F - s))));
    Store(up_N[i], d * (g * s));
  }
}
INSTANTIATE_ELEMENT_LOOP(SwigluBackward)

}  // namespace shardc::SHARDC_LOOPS
