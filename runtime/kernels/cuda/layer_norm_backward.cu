// layer_norm_backward: the gradients of x, of the weight and of the bias.
#include "runtime/kernels/cuda/norm_backward.h"

namespace shardc::cuda {

auto Bind(const op::LayerNormBackward& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class X>() -> Kernel {
    CheckScratch(op, binder.plan());
    return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy), x = Resolve<const X>(binder, op.x),
            weight = Resolve<const T>(binder, op.weight), mean = Resolve<const float>(binder, op.mean),
            rstd = Resolve<const float>(binder, op.rstd), dx = Resolve<X>(binder, op.dx),
            dweight = Resolve<float>(binder, op.dweight), dbias = Resolve<float>(binder, op.dbias),
            scratch = Resolve<float>(binder, op.scratch), size = AsMatrix(binder.plan(), op.x),
            adds_dx = AddsOnto(binder, op.dx, op.dx_onto), adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto),
            adds_dbias = AddsOnto(binder, op.dbias, op.dbias_onto)](const Moment& moment) -> Status {
      const NormGradients<T, X> operands{.dy_NH = dy.At(moment),
                                         .x_NH = x.At(moment),
                                         .weight_H = weight.At(moment),
                                         .mean_N = mean.At(moment),
                                         .rstd_N = rstd.At(moment),
                                         .dx_NH = dx.At(moment),
                                         .adds_dx = adds_dx,
                                         .partials_RH = scratch.At(moment)};
      return LaunchNormBackward<true>(stream, operands, size.rows, size.columns, {dweight.At(moment), adds_dweight},
                                      {dbias.At(moment), adds_dbias});
    };
  });
}

}  // namespace shardc::cuda
