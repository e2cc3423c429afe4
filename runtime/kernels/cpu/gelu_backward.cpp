// gelu_backward: the gradient of x, over x.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindGeluBackward(const op::GeluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dx, op.x);
  return [dy = Resolve<const T>(binder, op.dy), dx = Resolve<T>(binder, op.dx),
          elements = binder.ViewOf(op.dy).num_elements(), tanh_form = op.tanh_form,
          backward = LoopsOf(binder.plan()).Of<T>().GeluBackward](const Moment& moment) -> Status {
    const T* const dy_N = dy.At(moment);
    T* const x_N = dx.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { backward(dy_N + begin, end - begin, tanh_form, x_N + begin); });
    return Success{};
  };
}

auto Bind(const op::GeluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() { return BindGeluBackward<T>(op, binder); });
}

}  // namespace shardc::cpu
