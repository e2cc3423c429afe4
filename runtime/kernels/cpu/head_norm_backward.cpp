// head_norm_backward: dx head by head, then dweight column by column in its own pass over dy and x, by the loops of
// rms_norm_backward: threads share the columns, never the heads, so that the order of the sums is one. x_ND, dy_ND,
// dx_ND: N heads of all positions, D head dim; weight_D, dweight_D; rstd_N.
#include <algorithm>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindHeadNormBackward(const op::HeadNormBackward& op, Binder& binder) -> Kernel {
  const bool adds_dx = AddsOnto(binder, op.dx, op.dx_onto);
  const bool adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto);
  const ResidualLoops<T, T>& loops = LoopsOf(binder.plan()).Of<T, T>();
  return [dy = Resolve<const T>(binder, op.dy), x = Resolve<const T>(binder, op.x),
          weight = Resolve<const T>(binder, op.weight), rstd = Resolve<const float>(binder, op.rstd),
          dx = Resolve<T>(binder, op.dx), dweight = Resolve<float>(binder, op.dweight),
          heads = ElementsOf(binder.plan(), op.rstd), head_dim = ShapeOf(binder.plan(), op.weight)[0], adds_dx,
          adds_dweight, &loops](const Moment& moment) -> Status {
    const T* const dy_ND = dy.At(moment);
    const T* const x_ND = x.At(moment);
    const T* const weight_D = weight.At(moment);
    const float* const rstd_N = rstd.At(moment);
    T* const dx_ND = dx.At(moment);
    float* const dweight_D = dweight.At(moment);
    ParallelRanges(heads, RowsPerThread(head_dim), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * head_dim;
      loops.RmsNormBackward(dy_ND + first, x_ND + first, weight_D, rstd_N + begin, end - begin, head_dim, adds_dx,
                            dx_ND + first);
    });
    ParallelRanges(head_dim, std::max(LeastColumns, RowsPerThread(heads)), [&](int64_t begin, int64_t end) {
      loops.RmsNormBackwardWeight(dy_ND, x_ND, rstd_N, heads, head_dim, begin, end, adds_dweight, dweight_D);
    });
    return Success{};
  };
}

auto Bind(const op::HeadNormBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindHeadNormBackward<T>(op, binder); });
}

}  // namespace shardc
