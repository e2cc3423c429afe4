// swiglu_backward, over gate and up. With s = sigmoid(gate): dup = dy gate s, dgate = dy up s (1 + gate (1 - s)).
#include "runtime/kernels/cpu/exponential.h"
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindSwigluBackward(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  CheckSamePlace(binder, op.dgate, op.gate);
  CheckSamePlace(binder, op.dup, op.up);
  return [dy = Resolve<const T>(binder, op.dy), dgate = Resolve<T>(binder, op.dgate), dup = Resolve<T>(binder, op.dup),
          elements = binder.ViewOf(op.dy).num_elements()](const Moment& moment) -> Status {
    const T* const dy_N = dy.At(moment);
    T* const gate_N = dgate.At(moment);
    T* const up_N = dup.At(moment);
    ParallelRanges(elements, ElementsPerThread, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float g = static_cast<float>(gate_N[i]);
        const float u = static_cast<float>(up_N[i]);
        const float d = static_cast<float>(dy_N[i]);
        const float s = Sigmoid(g);
        gate_N[i] = static_cast<T>(d * u * (s * (1.0F + g * (1.0F - s))));
        up_N[i] = static_cast<T>(d * (g * s));
      }
    });
    return Success{};
  };
}

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() { return BindSwigluBackward<T>(op, binder); });
}

}  // namespace shardc
