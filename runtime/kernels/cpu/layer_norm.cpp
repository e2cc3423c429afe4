// layer_norm: y = (x - mean) * rstd * weight + bias, a row at a time. x_NH, y_NH: N rows, H hidden; weight_H, bias_H;
// mean_N, rstd_N.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::LayerNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class R>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.x);
    return BindOver(
        [rows = size.rows, hidden = size.columns, eps = op.eps, norm = LoopsOf(binder.plan()).Of<T, R>().LayerNorm](
            const R* x_NH, const T* weight_H, const T* bias_H, T* y_NH, float* mean_N, float* rstd_N) {
          ParallelRanges(rows, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
            norm(x_NH + begin * hidden, weight_H, bias_H, end - begin, hidden, eps, y_NH + begin * hidden,
                 mean_N + begin, rstd_N + begin);
          });
        },
        Resolve<const R>(binder, op.x), Resolve<const T>(binder, op.weight), Resolve<const T>(binder, op.bias),
        Resolve<T>(binder, op.y), Resolve<float>(binder, op.mean), Resolve<float>(binder, op.rstd));
  });
}

}  // namespace shardc::cpu
