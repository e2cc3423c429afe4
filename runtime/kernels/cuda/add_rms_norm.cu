// add_rms_norm: sum = x + branch in x's type, and rms_norm of sum, in one pass over both operands.
#include "runtime/kernels/cuda/norm.h"

namespace shardc::cuda {

auto Bind(const op::AddRmsNorm& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class X>() -> Kernel {
    return [stream = StreamOf(binder.queue()), x = Resolve<const X>(binder, op.x),
            branch = Resolve<const T>(binder, op.branch), weight = Resolve<const T>(binder, op.weight),
            sum = Resolve<X>(binder, op.sum), y = Resolve<T>(binder, op.y), rstd = Resolve<float>(binder, op.rstd),
            size = AsMatrix(binder.plan(), op.x), eps = op.eps](const Moment& moment) -> Status {
      return LaunchNorm<NormOf::Sum>(stream,
                                     NormOperands<T, X>{.x_NH = x.At(moment),
                                                        .weight_H = weight.At(moment),
                                                        .y_NH = y.At(moment),
                                                        .rstd_N = rstd.At(moment),
                                                        .branch_NH = branch.At(moment),
                                                        .sum_NH = sum.At(moment)},
                                     size.rows, size.columns, eps);
    };
  });
}

}  // namespace shardc::cuda
