// add: y = a + b, over b.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindAdd(const op::Add& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.b);
  return
      [a = Resolve<const T>(binder, op.a), y = Resolve<T>(binder, op.y), elements = binder.ViewOf(op.y).num_elements(),
       add = LoopsOf(binder.plan()).Of<T>().Add](const Moment& moment) -> Status {
        const T* const a_N = a.At(moment);
        T* const y_N = y.At(moment);
        ParallelRanges(elements, ElementsPerThread,
                       [&](int64_t begin, int64_t end) { add(a_N + begin, end - begin, y_N + begin); });
        return Success{};
      };
}

auto Bind(const op::Add& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindAdd<T>(op, binder); });
}

}  // namespace shardc::cpu
