// add: y = a + b, over b.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

auto Bind(const op::Add& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.b);
    return [stream = StreamOf(binder.queue()), a = Resolve<const T>(binder, op.a), y = Resolve<T>(binder, op.y),
            elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
      T* const y_N = y.At(moment);
      return Map(stream, elements, Plus{}, y_N, a.At(moment), static_cast<const T*>(y_N));
    };
  });
}

}  // namespace shardc::cuda
