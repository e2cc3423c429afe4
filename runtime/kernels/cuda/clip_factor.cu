// clip_factor: what the gradients are multiplied with so that their norm is at most max_norm. A norm that is not finite
// gives no usable factor, as on the CPU, whose kernel names the source.
#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

static __global__ void __launch_bounds__(WarpSize)
    ClipFactorOfNorm(const double* sum, double max_norm, double* norm, double* factor) {
  if (Thread() != 0) {
    return;
  }
  const double length = sqrt(*sum);
  const double ratio = max_norm / (length + 1e-6);
  *norm = length;
  // Written so that a NaN ratio is passed on.
  *factor = max_norm == 0 || ratio > 1 ? 1.0 : ratio;
}

auto Bind(const op::ClipFactor& op, Binder& binder) -> Kernel {
  return [stream = StreamOf(binder.queue()), sum = Resolve<const double>(binder, op.sum),
          norm = Resolve<double>(binder, op.norm), factor = Resolve<double>(binder, op.factor),
          max_norm = op.max_norm](const Moment& moment) -> Status {
    return Launch(stream, {.threads = WarpSize}, ClipFactorOfNorm, sum.At(moment), max_norm, norm.At(moment),
                  factor.At(moment));
  };
}

}  // namespace shardc::cuda
