// swiglu_backward: the gradients of gate and up, over their operands.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindSwigluBackward(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dgate, op.gate);
  CheckSameBytes(binder, op.dup, op.up);
  return [dy = Resolve<const T>(binder, op.dy), dgate = Resolve<T>(binder, op.dgate), dup = Resolve<T>(binder, op.dup),
          elements = binder.ViewOf(op.dy).num_elements(),
          backward = LoopsOf(binder.plan()).Of<T>().SwigluBackward](const Moment& moment) -> Status {
    const T* const dy_N = dy.At(moment);
    T* const gate_N = dgate.At(moment);
    T* const up_N = dup.At(moment);
    ParallelRanges(elements, ElementsPerThread, [&](int64_t begin, int64_t end) {
      backward(dy_N + begin, end - begin, gate_N + begin, up_N + begin);
    });
    return Success{};
  };
}

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() { return BindSwigluBackward<T>(op, binder); });
}

}  // namespace shardc::cpu
