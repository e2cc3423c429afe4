// cast: f32 to bf16, or bf16 to f32.
#include "runtime/kernels/cuda/elementwise.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

struct Same {
  __device__ __forceinline__ auto operator()(float x) const -> float { return x; }
};

template <class From, class To>
static auto BindCast(const op::Cast& op, Binder& binder) -> Kernel {
  return [stream = StreamOf(binder.queue()), x = Resolve<const From>(binder, op.x), y = Resolve<To>(binder, op.y),
          elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
    return Map(stream, elements, Same{}, y.At(moment), x.At(moment));
  };
}

auto Bind(const op::Cast& op, Binder& binder) -> Kernel {
  const DType from = binder.ViewOf(op.x).dtype;
  CHECK(from != binder.ViewOf(op.y).dtype, "a cast from {} to itself", ToText(from));
  return from == DType::F32 ? BindCast<float, BFloat16>(op, binder) : BindCast<BFloat16, float>(op, binder);
}

}  // namespace shardc::cuda
