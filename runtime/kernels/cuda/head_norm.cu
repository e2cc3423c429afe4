// head_norm: y = x * rstd * weight, a head at a time, as rms_norm does a row.
#include "runtime/kernels/cuda/norm.h"

namespace shardc::cuda {

auto Bind(const op::HeadNorm& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindNormOfRows<T, T>(op, binder); });
}

}  // namespace shardc::cuda
