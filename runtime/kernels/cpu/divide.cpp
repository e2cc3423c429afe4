// divide: one f64 by another, by the rules of IEEE 754 (0 / 0 is NaN: the mean of nothing).
#include "runtime/kernels/cpu/operand.h"

namespace shardc {

auto Bind(const op::Divide& op, Binder& binder) -> Kernel {
  return [a = Resolve<const double>(binder, op.a), b = Resolve<const double>(binder, op.b),
          y = Resolve<double>(binder, op.y)](const Moment& moment) -> Status {
    *y.At(moment) = *a.At(moment) / *b.At(moment);
    return Success{};
  };
}

}  // namespace shardc
