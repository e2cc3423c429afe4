// swiglu: y = gate sigmoid(gate) up.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.y).num_elements(),
        [swiglu = LoopsOf(binder.plan()).Of<T>().Swiglu](int64_t count, const T* gate_N, const T* up_N, T* y_N) {
          swiglu(gate_N, up_N, count, y_N);
        },
        Resolve<const T>(binder, op.gate), Resolve<const T>(binder, op.up), Resolve<T>(binder, op.y));
  });
}

}  // namespace shardc::cpu
