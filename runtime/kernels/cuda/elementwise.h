// Kernels that compute each element of a result from the elements at its place: a thread takes one vector of 16 bytes
// of each operand.
#pragma once

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

constexpr int ElementwiseThreads = 256;

template <int N, class Rule, class Y, class... X>
__device__ __forceinline__ auto MapAt(int64_t first, const Rule& rule, Y* y, const X*... x) -> void {
  const auto map = [&](const auto&... operands) {
    Floats<N> result;
    UNROLL
    for (int i = 0; i < N; ++i) {
      result.at[i] = rule(operands.at[i]...);
    }
    StoreFloats(y + first, result);
  };
  map(LoadFloats<N>(x + first)...);
}

/// y may lie on an operand.
template <int N, class Rule, class Y, class... X>
static __global__ void __launch_bounds__(ElementwiseThreads)
    MapKernel(int64_t num_elements, Rule rule, Y* y, const X*... x) {
  const int64_t first = (BlockX() * ElementwiseThreads + Thread()) * N;
  if (first + N <= num_elements) {
    MapAt<N>(first, rule, y, x...);
  } else {
    for (int64_t i = first; i < num_elements; ++i) {
      MapAt<1>(i, rule, y, x...);
    }
  }
}

/// Computes y[i] = rule(x[i]...), in f32.
template <class Rule, class Y, class... X>
auto Map(DeviceStream stream, int64_t num_elements, const Rule& rule, Y* y, const X*... x) -> Status {
  constexpr int N = PackSize<Y, X...>;
  const auto launch = [&]<int Width>() {
    return Launch(stream, {.grid = {BlocksFor(num_elements, ElementwiseThreads * Width)}},
                  MapKernel<Width, Rule, Y, X...>, num_elements, rule, y, x...);
  };
  const bool aligned = IsAligned<N>(y) && (IsAligned<N>(x) && ...);
  return aligned ? launch.template operator()<N>() : launch.template operator()<1>();
}

}  // namespace shardc::cuda
