// scale: y = factor * x, over x.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::Scale& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.x);
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.y).num_elements(),
        [factor = static_cast<float>(op.factor), scale = LoopsOf(binder.plan()).Of<T>().Scale](int64_t count, T* y_N) {
          scale(factor, count, y_N);
        },
        Resolve<T>(binder, op.y));
  });
}

}  // namespace shardc::cpu
