// count_valid: how many targets count, as f64 so that counts and loss sums travel in one all-reduce.
#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

auto Bind(const op::CountValid& op, Binder& binder) -> Kernel {
  const int64_t elements = binder.ViewOf(op.targets).num_elements();
  const bool adds = AddsOnto(binder, op.count, op.count_onto);
  return BindOver(
      [elements, adds](const int32_t* target, double* total) {
        int64_t valid = 0;
        for (int64_t i = 0; i < elements; ++i) {
          valid += target[i] >= 0 ? 1 : 0;
        }
        *total = (adds ? *total : 0) + static_cast<double>(valid);
      },
      Resolve<const int32_t>(binder, op.targets), Resolve<double>(binder, op.count));
}

}  // namespace shardc::cpu
