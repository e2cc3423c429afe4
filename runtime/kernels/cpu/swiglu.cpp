// swiglu: y = gate sigmoid(gate) up.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindSwiglu(const op::Swiglu& op, Binder& binder) -> Kernel {
  return [gate = Resolve<const T>(binder, op.gate), up = Resolve<const T>(binder, op.up), y = Resolve<T>(binder, op.y),
          elements = binder.ViewOf(op.y).num_elements(),
          swiglu = LoopsOf(binder.plan()).Of<T>().Swiglu](const Moment& moment) -> Status {
    const T* const gate_N = gate.At(moment);
    const T* const up_N = up.At(moment);
    T* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { swiglu(gate_N + begin, up_N + begin, end - begin, y_N + begin); });
    return Success{};
  };
}

auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindSwiglu<T>(op, binder); });
}

}  // namespace shardc::cpu
