// cast: f32 to bf16, or bf16 to f32.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

template <class From, class To, class Loop>
static auto BindCast(const op::Cast& op, Binder& binder, Loop loop) -> Kernel {
  return [x = Resolve<const From>(binder, op.x), y = Resolve<To>(binder, op.y),
          elements = binder.ViewOf(op.y).num_elements(), loop](const Moment& moment) -> Status {
    const From* const x_N = x.At(moment);
    To* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { loop(x_N + begin, end - begin, y_N + begin); });
    return Success{};
  };
}

auto Bind(const op::Cast& op, Binder& binder) -> Kernel {
  const Loops& loops = LoopsOf(binder.plan());
  const DType from = binder.ViewOf(op.x).dtype;
  CHECK(from != binder.ViewOf(op.y).dtype, "a cast from {} to itself", ToText(from));
  return from == DType::F32 ? BindCast<float, BFloat16>(op, binder, loops.ToBFloat16)
                            : BindCast<BFloat16, float>(op, binder, loops.ToFloat32);
}

}  // namespace shardc::cpu
