// swiglu_backward: the gradients of gate and up, over their operands.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dgate, op.gate);
  CheckSameBytes(binder, op.dup, op.up);
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.dy).num_elements(),
        [backward = LoopsOf(binder.plan()).Of<T>().SwigluBackward](int64_t count, const T* dy_N, T* gate_N, T* up_N) {
          backward(dy_N, count, gate_N, up_N);
        },
        Resolve<const T>(binder, op.dy), Resolve<T>(binder, op.dgate), Resolve<T>(binder, op.dup));
  });
}

}  // namespace shardc::cpu
