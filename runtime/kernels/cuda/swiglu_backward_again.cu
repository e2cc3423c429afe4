// swiglu_backward_again: the gradients of gate and up, over their operands, and y over dy, in one pass.
#include "runtime/kernels/cuda/swiglu.h"

namespace shardc::cuda {

auto Bind(const op::SwigluBackwardAgain& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.dy);
  return ForElementType(binder.ViewOf(op.dy).dtype,
                        [&]<class T>() { return BindSwigluGradients<true, T>(op, binder); });
}

}  // namespace shardc::cuda
