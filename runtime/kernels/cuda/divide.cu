// divide: one f64 by another, by the rules of IEEE 754 (0 / 0 is NaN: the mean of nothing). When the op adds to a sum,
// 0 / 0 adds nothing.
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

static __global__ void DivideKernel(const double* a, const double* b, bool adds, double* y) {
  if (Thread() != 0) {
    return;
  }
  if (!adds) {
    *y = *a / *b;
  } else if (*a != 0 || *b != 0) {
    *y += *a / *b;
  }
}

auto Bind(const op::Divide& op, Binder& binder) -> Kernel {
  return [stream = StreamOf(binder.queue()), a = Resolve<const double>(binder, op.a),
          b = Resolve<const double>(binder, op.b), y = Resolve<double>(binder, op.y),
          adds = AddsOnto(binder, op.y, op.y_onto)](const Moment& moment) -> Status {
    return Launch(stream, {.grid = {1}, .threads = WarpSize}, DivideKernel, a.At(moment), b.At(moment), adds,
                  y.At(moment));
  };
}

}  // namespace shardc::cuda
