// add: y = a + b, over b.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::Add& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.b);
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() {
    return BindElements(
        binder.ViewOf(op.y).num_elements(),
        [add = LoopsOf(binder.plan()).Of<T>().Add](int64_t count, const T* a_N, T* y_N) { add(a_N, count, y_N); },
        Resolve<const T>(binder, op.a), Resolve<T>(binder, op.y));
  });
}

}  // namespace shardc::cpu
