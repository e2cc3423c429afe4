// cast: f32 to bf16, or bf16 to f32.
#include "runtime/kernels/cpu/elementwise.h"

namespace shardc::cpu {

auto Bind(const op::Cast& op, Binder& binder) -> Kernel {
  const Loops& loops = LoopsOf(binder.plan());
  const DType from = binder.ViewOf(op.x).dtype;
  CHECK(from != binder.ViewOf(op.y).dtype, "a cast from {} to itself", ToText(from));
  const auto bind = [&]<class From, class To>(auto loop) {
    return BindElements(
        binder.ViewOf(op.y).num_elements(), [loop](int64_t count, const From* x_N, To* y_N) { loop(x_N, count, y_N); },
        Resolve<const From>(binder, op.x), Resolve<To>(binder, op.y));
  };
  return from == DType::F32 ? bind.template operator()<float, BFloat16>(loops.ToBFloat16)
                            : bind.template operator()<BFloat16, float>(loops.ToFloat32);
}

}  // namespace shardc::cpu
