// head_norm: y = x * rstd * weight, a head at a time, by the loop of rms_norm. x_ND, y_ND: N heads of all positions, D
// head dim; weight_D; rstd_N.
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindHeadNorm(const op::HeadNorm& op, Binder& binder) -> Kernel {
  const int64_t head_dim = ShapeOf(binder.plan(), op.weight)[0];
  return
      [x = Resolve<const T>(binder, op.x), weight = Resolve<const T>(binder, op.weight), y = Resolve<T>(binder, op.y),
       rstd = Resolve<float>(binder, op.rstd), heads = ElementsOf(binder.plan(), op.rstd), head_dim, eps = op.eps,
       norm = LoopsOf(binder.plan()).Of<T, T>().RmsNorm](const Moment& moment) -> Status {
        const T* const x_ND = x.At(moment);
        const T* const weight_D = weight.At(moment);
        T* const y_ND = y.At(moment);
        float* const rstd_N = rstd.At(moment);
        ParallelRanges(heads, RowsPerThread(head_dim), [&](int64_t begin, int64_t end) {
          const int64_t first = begin * head_dim;
          norm(x_ND + first, weight_D, end - begin, head_dim, eps, y_ND + first, rstd_N + begin);
        });
        return Success{};
      };
}

auto Bind(const op::HeadNorm& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindHeadNorm<T>(op, binder); });
}

}  // namespace shardc
