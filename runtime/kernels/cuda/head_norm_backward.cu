// head_norm_backward: the gradients of x and of the weight, as rms_norm_backward gives them of rows.
#include "runtime/kernels/cuda/norm_backward.h"

namespace shardc::cuda {

auto Bind(const op::HeadNormBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindNormOfRowsBackward<T, T>(op, binder); });
}

}  // namespace shardc::cuda
