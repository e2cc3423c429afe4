// count_valid: how many targets count, as f64 so that counts and loss sums travel in one all-reduce. One block.
#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

constexpr int CountThreads = 512;

static __global__ void __launch_bounds__(CountThreads)
    CountTargets(const int32_t* targets_N, int64_t elements, bool adds, double* count) {
  int64_t own = 0;
  for (int64_t i = Thread(); i < elements; i += CountThreads) {
    own += targets_N[i] >= 0 ? 1 : 0;
  }
  const int64_t valid = BlockSum(own);
  if (Thread() == 0) {
    *count = (adds ? *count : 0) + static_cast<double>(valid);
  }
}

auto Bind(const op::CountValid& op, Binder& binder) -> Kernel {
  return [stream = StreamOf(binder.queue()), targets = Resolve<const int32_t>(binder, op.targets),
          count = Resolve<double>(binder, op.count), elements = binder.ViewOf(op.targets).num_elements(),
          adds = AddsOnto(binder, op.count, op.count_onto)](const Moment& moment) -> Status {
    return Launch(stream, {.threads = CountThreads}, CountTargets, targets.At(moment), elements, adds,
                  count.At(moment));
  };
}

}  // namespace shardc::cuda
