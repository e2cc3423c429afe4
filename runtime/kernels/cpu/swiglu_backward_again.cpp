// swiglu_backward_again: the gradients of gate and up, over their operands, and y over dy. y is computed before they
// are overwritten, and stays aside until the gradients have read dy.
#include <algorithm>
#include <array>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::SwigluBackwardAgain& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.dgate, op.gate);
    CheckSameBytes(binder, op.dup, op.up);
    CheckSameBytes(binder, op.y, op.dy);
    return BindOver(
        [elements = binder.ViewOf(op.dy).num_elements(), &loops = LoopsOf(binder.plan()).Of<T>()](T* y_N, T* gate_N,
                                                                                                  T* up_N) {
          ParallelRanges(elements, ElementsPerThread, [&](int64_t begin, int64_t end) {
            std::array<T, 1024> aside;
            for (int64_t first = begin; first < end; first += std::ssize(aside)) {
              const int64_t size = std::min<int64_t>(end - first, std::ssize(aside));
              loops.Swiglu(gate_N + first, up_N + first, size, aside.data());
              loops.SwigluBackward(y_N + first, size, gate_N + first, up_N + first);
              std::copy_n(aside.begin(), size, y_N + first);
            }
          });
        },
        Resolve<T>(binder, op.y), Resolve<T>(binder, op.dgate), Resolve<T>(binder, op.dup));
  });
}

}  // namespace shardc::cpu
