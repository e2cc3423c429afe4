// scale: y = factor * x, over x.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

struct TimesFactor {
  float factor;
  __device__ __forceinline__ auto operator()(float x) const -> float { return factor * x; }
};

auto Bind(const op::Scale& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    return
        [stream = StreamOf(binder.queue()), y = Resolve<T>(binder, op.y), elements = binder.ViewOf(op.y).num_elements(),
         scaled = TimesFactor{static_cast<float>(op.factor)}](const Moment& moment) -> Status {
          T* const y_N = y.At(moment);
          return Map(stream, elements, scaled, y_N, static_cast<const T*>(y_N));
        };
  });
}

}  // namespace shardc::cuda
