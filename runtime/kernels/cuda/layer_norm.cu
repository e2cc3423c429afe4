// layer_norm: y = (x - mean) * rstd * weight + bias, a row at a time.
#include "runtime/kernels/cuda/norm.h"

namespace shardc::cuda {

auto Bind(const op::LayerNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class X>() -> Kernel {
    return
        [stream = StreamOf(binder.queue()), x = Resolve<const X>(binder, op.x),
         weight = Resolve<const T>(binder, op.weight), bias = Resolve<const T>(binder, op.bias),
         y = Resolve<T>(binder, op.y), mean = Resolve<float>(binder, op.mean), rstd = Resolve<float>(binder, op.rstd),
         size = AsMatrix(binder.plan(), op.x), eps = op.eps](const Moment& moment) -> Status {
          return LaunchNorm<NormOf::RowWithMean>(stream,
                                                 NormOperands<T, X>{.x_NH = x.At(moment),
                                                                    .weight_H = weight.At(moment),
                                                                    .bias_H = bias.At(moment),
                                                                    .y_NH = y.At(moment),
                                                                    .mean_N = mean.At(moment),
                                                                    .rstd_N = rstd.At(moment)},
                                                 size.rows, size.columns, eps);
        };
  });
}

}  // namespace shardc::cuda
