// What swiglu and its backward compute of an element, and the kernel of the gradients, which gives y once more on
// request.
#pragma once

#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

__device__ __forceinline__ auto Sigmoid(float x) -> float { return 1.0F / (1.0F + expf(-x)); }

template <int N, bool Again, class T>
__device__ __forceinline__ auto SwigluBackwardAt(T* dy, T* gate, T* up) -> void {
  Floats<N> d = LoadFloats<N>(dy);
  Floats<N> g = LoadFloats<N>(gate);
  Floats<N> u = LoadFloats<N>(up);
  UNROLL
  for (int i = 0; i < N; ++i) {
    const float s = Sigmoid(g.at[i]);
    const float silu = g.at[i] * s;
    const float y = silu * u.at[i];
    g.at[i] = d.at[i] * u.at[i] * (s * (1.0F + g.at[i] * (1.0F - s)));
    u.at[i] = d.at[i] * silu;
    d.at[i] = y;
  }
  StoreFloats(gate, g);
  StoreFloats(up, u);
  if constexpr (Again) {
    StoreFloats(dy, d);
  }
}

template <int N, bool Again, class T>
static __global__ void __launch_bounds__(ElementwiseThreads)
    SwigluBackwardKernel(int64_t num_elements, T* dy_N, T* gate_N, T* up_N) {
  const int64_t first = (BlockX() * ElementwiseThreads + Thread()) * N;
  if (first + N <= num_elements) {
    SwigluBackwardAt<N, Again>(dy_N + first, gate_N + first, up_N + first);
  } else {
    for (int64_t i = first; i < num_elements; ++i) {
      SwigluBackwardAt<1, Again>(dy_N + i, gate_N + i, up_N + i);
    }
  }
}

/// Binds swiglu_backward, or swiglu_backward_again, which puts y over dy.
template <bool Again, class T, class Backward>
auto BindSwigluGradients(const Backward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dgate, op.gate);
  CheckSameBytes(binder, op.dup, op.up);
  return [stream = StreamOf(binder.queue()), dy = Resolve<T>(binder, op.dy), dgate = Resolve<T>(binder, op.dgate),
          dup = Resolve<T>(binder, op.dup),
          elements = binder.ViewOf(op.dy).num_elements()](const Moment& moment) -> Status {
    constexpr int N = PackSize<T>;
    T* const dy_N = dy.At(moment);
    T* const gate_N = dgate.At(moment);
    T* const up_N = dup.At(moment);
    const auto launch = [&]<int Width>() {
      return Launch(stream, {.grid = {BlocksFor(elements, ElementwiseThreads * Width)}},
                    SwigluBackwardKernel<Width, Again, T>, elements, dy_N, gate_N, up_N);
    };
    const bool aligned = IsAligned<N>(dy_N) && IsAligned<N>(gate_N) && IsAligned<N>(up_N);
    return aligned ? launch.template operator()<N>() : launch.template operator()<1>();
  };
}

}  // namespace shardc::cuda
