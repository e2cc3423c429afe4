// swiglu: y = gate sigmoid(gate) up.
// Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 5.
#include "runtime/kernels/cpu/exponential.h"
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindSwiglu(const op::Swiglu& op, Binder& binder) -> Kernel {
  return [gate = Resolve<const T>(binder, op.gate), up = Resolve<const T>(binder, op.up), y = Resolve<T>(binder, op.y),
          elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
    const T* const gate_N = gate.At(moment);
    const T* const up_N = up.At(moment);
    T* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float g = static_cast<float>(gate_N[i]);
        y_N[i] = static_cast<T>(g * Sigmoid(g) * static_cast<float>(up_N[i]));
      }
    });
    return Success{};
  };
}

auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindSwiglu<T>(op, binder); });
}

}  // namespace shardc
