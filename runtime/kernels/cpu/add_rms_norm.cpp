// add_rms_norm: residual_add, then rms_norm.
#include "runtime/kernels/parts.h"

namespace shardc::cpu {

auto Bind(const op::AddRmsNorm& op, Binder& binder) -> Kernel { return BindInParts(op, binder); }

}  // namespace shardc::cpu
