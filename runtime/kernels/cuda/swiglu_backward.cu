// swiglu_backward: the gradients of gate and up, over their operands.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/cuda/swiglu.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

template <int N, class T>
__device__ __forceinline__ auto SwigluBackwardAt(const T* dy, T* gate, T* up) -> void {
  const Floats<N> d = LoadFloats<N>(dy);
  Floats<N> g = LoadFloats<N>(gate);
  Floats<N> u = LoadFloats<N>(up);
  UNROLL
  for (int i = 0; i < N; ++i) {
    const float s = Sigmoid(g.at[i]);
    const float dup = d.at[i] * (g.at[i] * s);
    g.at[i] = d.at[i] * u.at[i] * (s * (1.0F + g.at[i] * (1.0F - s)));
    u.at[i] = dup;
  }
  StoreFloats(gate, g);
  StoreFloats(up, u);
}

template <int N, class T>
static __global__ void __launch_bounds__(ElementwiseThreads)
    SwigluBackwardKernel(int64_t num_elements, const T* dy_N, T* gate_N, T* up_N) {
  const int64_t first = (BlockX() * ElementwiseThreads + Thread()) * N;
  if (first + N <= num_elements) {
    SwigluBackwardAt<N>(dy_N + first, gate_N + first, up_N + first);
  } else {
    for (int64_t i = first; i < num_elements; ++i) {
      SwigluBackwardAt<1>(dy_N + i, gate_N + i, up_N + i);
    }
  }
}

template <class T>
static auto BindSwigluBackward(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dgate, op.gate);
  CheckSameBytes(binder, op.dup, op.up);
  return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy), dgate = Resolve<T>(binder, op.dgate),
          dup = Resolve<T>(binder, op.dup),
          elements = binder.ViewOf(op.dy).num_elements()](const Moment& moment) -> Status {
    constexpr int N = PackSize<T>;
    const T* const dy_N = dy.At(moment);
    T* const gate_N = dgate.At(moment);
    T* const up_N = dup.At(moment);
    const auto launch = [&]<int Width>() {
      return Launch(stream, {.grid = {BlocksFor(elements, ElementwiseThreads * Width)}}, SwigluBackwardKernel<Width, T>,
                    elements, dy_N, gate_N, up_N);
    };
    const bool aligned = IsAligned<N>(dy_N) && IsAligned<N>(gate_N) && IsAligned<N>(up_N);
    return aligned ? launch.template operator()<N>() : launch.template operator()<1>();
  };
}

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() { return BindSwigluBackward<T>(op, binder); });
}

}  // namespace shardc::cuda
