// layer_norm: y = (x - mean) * rstd * weight + bias, a row at a time. x_NH, y_NH: N rows, H hidden; weight_H, bias_H;
// mean_N, rstd_N.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::LayerNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class R>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.x);
    return
        [x = Resolve<const R>(binder, op.x), weight = Resolve<const T>(binder, op.weight),
         bias = Resolve<const T>(binder, op.bias), y = Resolve<T>(binder, op.y), mean = Resolve<float>(binder, op.mean),
         rstd = Resolve<float>(binder, op.rstd), rows = size.rows, hidden = size.columns, eps = op.eps,
         norm = LoopsOf(binder.plan()).Of<T, R>().LayerNorm](const Moment& moment) -> Status {
          const R* const x_NH = x.At(moment);
          const T* const weight_H = weight.At(moment);
          const T* const bias_H = bias.At(moment);
          T* const y_NH = y.At(moment);
          float* const mean_N = mean.At(moment);
          float* const rstd_N = rstd.At(moment);
          ParallelRanges(rows, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
            norm(x_NH + begin * hidden, weight_H, bias_H, end - begin, hidden, eps, y_NH + begin * hidden,
                 mean_N + begin, rstd_N + begin);
          });
          return Success{};
        };
  });
}

}  // namespace shardc::cpu
