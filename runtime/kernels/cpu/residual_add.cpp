// residual_add: y = x + branch, in the type of the stream.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.branch).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class R>() {
    return BindElements(
        binder.ViewOf(op.y).num_elements(),
        [add = LoopsOf(binder.plan()).Of<T, R>().ResidualAdd](int64_t count, const R* x_N, const T* branch_N, R* y_N) {
          add(x_N, branch_N, count, y_N);
        },
        Resolve<const R>(binder, op.x), Resolve<const T>(binder, op.branch), Resolve<R>(binder, op.y));
  });
}

}  // namespace shardc::cpu
