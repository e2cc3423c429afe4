// gelu_backward: the gradient of x, over x.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::GeluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dx, op.x);
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.dy).num_elements(),
        [tanh_form = op.tanh_form, backward = LoopsOf(binder.plan()).Of<T>().GeluBackward](
            int64_t count, const T* dy_N, T* x_N) { backward(dy_N, count, tanh_form, x_N); },
        Resolve<const T>(binder, op.dy), Resolve<T>(binder, op.dx));
  });
}

}  // namespace shardc::cpu
