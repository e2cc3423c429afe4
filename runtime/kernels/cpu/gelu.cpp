// gelu: y = x times the normal distribution at x, or what its tanh form makes of that.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::Gelu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.y).num_elements(),
        [tanh_form = op.tanh_form, gelu = LoopsOf(binder.plan()).Of<T>().Gelu](int64_t count, const T* x_N, T* y_N) {
          gelu(x_N, count, tanh_form, y_N);
        },
        Resolve<const T>(binder, op.x), Resolve<T>(binder, op.y));
  });
}

}  // namespace shardc::cpu
