// rms_norm_backward: dx row by row, then dweight column by column.
#include "runtime/kernels/cpu/rms_norm.h"

namespace shardc::cpu {

auto Bind(const op::RmsNormBackward& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype,
                          [&]<class T, class R>() { return BindNormOfRowsBackward<T, R>(op, binder); });
}

}  // namespace shardc::cpu
