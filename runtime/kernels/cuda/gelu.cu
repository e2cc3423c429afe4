// gelu: y = x times the normal distribution at x, or what its tanh form makes of that.
#include "runtime/kernels/cuda/gelu.h"

#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

template <class Law>
struct GeluBy {
  __device__ __forceinline__ auto operator()(float x) const -> float { return x * Law{}(x).distribution; }
};

auto Bind(const op::Gelu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    return [stream = StreamOf(binder.queue()), x = Resolve<const T>(binder, op.x), y = Resolve<T>(binder, op.y),
            elements = binder.ViewOf(op.y).num_elements(), tanh_form = op.tanh_form](const Moment& moment) -> Status {
      return tanh_form ? Map(stream, elements, GeluBy<ByTanh>{}, y.At(moment), x.At(moment))
                       : Map(stream, elements, GeluBy<ByErfc>{}, y.At(moment), x.At(moment));
    };
  });
}

}  // namespace shardc::cuda
