// rms_norm: y = x * rstd * weight, a row at a time.
#include "runtime/kernels/cuda/norm.h"

namespace shardc::cuda {

auto Bind(const op::RmsNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype,
                          [&]<class T, class X>() { return BindNormOfRows<T, X>(op, binder); });
}

}  // namespace shardc::cuda
