// residual_add: y = x + branch, in the type of the stream.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T, class R>
static auto BindResidualAdd(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return [x = Resolve<const R>(binder, op.x), branch = Resolve<const T>(binder, op.branch),
          y = Resolve<R>(binder, op.y), elements = binder.ViewOf(op.y).num_elements(),
          add = LoopsOf(binder.plan()).Of<T, R>().ResidualAdd](const Moment& moment) -> Status {
    const R* const x_N = x.At(moment);
    const T* const branch_N = branch.At(moment);
    R* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { add(x_N + begin, branch_N + begin, end - begin, y_N + begin); });
    return Success{};
  };
}

auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.branch).dtype, binder.ViewOf(op.x).dtype,
                          [&]<class T, class R>() { return BindResidualAdd<T, R>(op, binder); });
}

}  // namespace shardc::cpu
