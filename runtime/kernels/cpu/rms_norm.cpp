// rms_norm: y = x * rstd * weight, a row at a time.
#include "runtime/kernels/cpu/rms_norm.h"

namespace shardc::cpu {

auto Bind(const op::RmsNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype,
                          [&]<class T, class R>() { return BindNormOfRows<T, R>(op, binder); });
}

}  // namespace shardc::cpu
