// swiglu_backward: the gradients of gate and up, over their operands.
#include "runtime/kernels/cuda/swiglu.h"

namespace shardc::cuda {

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype,
                        [&]<class T>() { return BindSwigluGradients<false, T>(op, binder); });
}

}  // namespace shardc::cuda
