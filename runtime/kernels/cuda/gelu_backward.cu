// gelu_backward: the gradient of x, over x.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/cuda/gelu.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

template <class Law>
struct GeluBackwardBy {
  __device__ __forceinline__ auto operator()(float dy, float x) const -> float {
    const NormalLaw at_x = Law{}(x);
    return dy * (at_x.distribution + at_x.x_by_density);
  }
};

auto Bind(const op::GeluBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.dx, op.x);
    return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy), dx = Resolve<T>(binder, op.dx),
            elements = binder.ViewOf(op.dy).num_elements(), tanh_form = op.tanh_form](const Moment& moment) -> Status {
      T* const dx_N = dx.At(moment);
      const T* const x_N = dx_N;
      return tanh_form ? Map(stream, elements, GeluBackwardBy<ByTanh>{}, dx_N, dy.At(moment), x_N)
                       : Map(stream, elements, GeluBackwardBy<ByErfc>{}, dx_N, dy.At(moment), x_N);
    };
  });
}

}  // namespace shardc::cuda
