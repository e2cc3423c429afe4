// rms_norm_backward: the gradients of x and of the weight.
#include "runtime/kernels/cuda/norm_backward.h"

namespace shardc::cuda {

auto Bind(const op::RmsNormBackward& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype,
                          [&]<class T, class X>() { return BindNormOfRowsBackward<T, X>(op, binder); });
}

}  // namespace shardc::cuda
