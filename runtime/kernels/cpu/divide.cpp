// divide: one f64 by another, by the rules of IEEE 754 (0 / 0 is NaN: the mean of nothing). When the op adds to a sum,
// 0 / 0 adds nothing.
#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

auto Bind(const op::Divide& op, Binder& binder) -> Kernel {
  return BindOver(
      [adds = AddsOnto(binder, op.y, op.y_onto)](const double* a, const double* b, double* result) {
        const double over = *a;
        const double under = *b;
        if (!adds) {
          *result = over / under;
        } else if (over != 0 || under != 0) {
          *result += over / under;
        }
      },
      Resolve<const double>(binder, op.a), Resolve<const double>(binder, op.b), Resolve<double>(binder, op.y));
}

}  // namespace shardc::cpu
