// divide: one f64 by another, by the rules of IEEE 754 (0 / 0 is NaN: the mean of nothing). When the op adds to a sum,
// 0 / 0 adds nothing.
#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

auto Bind(const op::Divide& op, Binder& binder) -> Kernel {
  return [a = Resolve<const double>(binder, op.a), b = Resolve<const double>(binder, op.b),
          y = Resolve<double>(binder, op.y), adds = AddsOnto(binder, op.y, op.y_onto)](const Moment& moment) -> Status {
    const double over = *a.At(moment);
    const double under = *b.At(moment);
    double* const result = y.At(moment);
    if (!adds) {
      *result = over / under;
    } else if (over != 0 || under != 0) {
      *result += over / under;
    }
    return Success{};
  };
}

}  // namespace shardc::cpu
