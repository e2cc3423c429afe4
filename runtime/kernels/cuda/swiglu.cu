// swiglu: y = gate sigmoid(gate) up. Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 5.
#include "runtime/kernels/cuda/swiglu.h"

namespace shardc::cuda {

struct SwigluOf {
  __device__ __forceinline__ auto operator()(float gate, float up) const -> float { return gate * Sigmoid(gate) * up; }
};

auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    return [stream = StreamOf(binder.queue()), gate = Resolve<const T>(binder, op.gate),
            up = Resolve<const T>(binder, op.up), y = Resolve<T>(binder, op.y),
            elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
      return Map(stream, elements, SwigluOf{}, y.At(moment), gate.At(moment), up.At(moment));
    };
  });
}

}  // namespace shardc::cuda
