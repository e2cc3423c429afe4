// count_valid: how many targets count, as f64 so that counts and loss sums travel in one all-reduce.
#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

auto Bind(const op::CountValid& op, Binder& binder) -> Kernel {
  const int64_t elements = binder.ViewOf(op.targets).num_elements();
  const bool adds = AddsOnto(binder, op.count, op.count_onto);
  return [targets = Resolve<const int32_t>(binder, op.targets), count = Resolve<double>(binder, op.count), elements,
          adds](const Moment& moment) -> Status {
    const int32_t* const target = targets.At(moment);
    int64_t valid = 0;
    for (int64_t i = 0; i < elements; ++i) {
      valid += target[i] >= 0 ? 1 : 0;
    }
    double* const total = count.At(moment);
    *total = (adds ? *total : 0) + static_cast<double>(valid);
    return Success{};
  };
}

}  // namespace shardc::cpu
