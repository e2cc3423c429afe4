// residual_add: y = x + branch, in the type of the stream.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.branch).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class R>() -> Kernel {
    return [stream = StreamOf(binder.queue()), x = Resolve<const R>(binder, op.x),
            branch = Resolve<const T>(binder, op.branch), y = Resolve<R>(binder, op.y),
            elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
      return Map(stream, elements, Plus{}, y.At(moment), x.At(moment), branch.At(moment));
    };
  });
}

}  // namespace shardc::cuda
