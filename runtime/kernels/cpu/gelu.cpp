// gelu: y = x times the normal distribution at x, or what its tanh form makes of that.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindGelu(const op::Gelu& op, Binder& binder) -> Kernel {
  return
      [x = Resolve<const T>(binder, op.x), y = Resolve<T>(binder, op.y), elements = binder.ViewOf(op.y).num_elements(),
       tanh_form = op.tanh_form, gelu = LoopsOf(binder.plan()).Of<T>().Gelu](const Moment& moment) -> Status {
        const T* const x_N = x.At(moment);
        T* const y_N = y.At(moment);
        ParallelRanges(elements, ElementsPerThread,
                       [&](int64_t begin, int64_t end) { gelu(x_N + begin, end - begin, tanh_form, y_N + begin); });
        return Success{};
      };
}

auto Bind(const op::Gelu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindGelu<T>(op, binder); });
}

}  // namespace shardc::cpu
