// head_norm_backward: dx head by head, then dweight column by column, as rms_norm_backward does with rows.
#include "runtime/kernels/cpu/rms_norm.h"

namespace shardc::cpu {

auto Bind(const op::HeadNormBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindNormOfRowsBackward<T, T>(op, binder); });
}

}  // namespace shardc::cpu
