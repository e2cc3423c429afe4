// sgd, on the owned segments of the slice. Padding is neither read nor written.
//
// Source: torch/optim/sgd.py of PyTorch 2.11 (_single_tensor_sgd), dampening 0: factors in f64, elements in f32; where
// parameters are kept in bf16, they are rounded to it after each update. Weight decay is added to the clipped gradient.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cpu {

auto Bind(const op::Sgd& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.parameter).dtype, [&]<class T>() -> Kernel {
    // T: the type that parameters are kept in.
    const Plan& plan = binder.plan();
    CheckSliceLengths(plan, {op.gradient, op.parameter, op.momentum_buffer, op.copy}, op.sub_vector, binder.rank());
    return BindOver(
        [shares = UpdateShares(plan, op.sub_vector, binder.rank()), &scalars = std::as_const(binder.scalars()), op,
         update = LoopsOf(plan).Of<T>().Sgd](const float* gradient_N, const double* factor, T* parameter_N,
                                             float* momentum_buffer_N, OtherElement<T>* copy_N) {
          for (const UpdateShare& share : shares) {
            SgdFactors factors = FactorsOf(op, share, scalars);
            factors.gradient = static_cast<float>(*factor);
            ParallelRanges(share.in_slice.size(), ElementsPerThread, [&](int64_t begin, int64_t end) {
              const int64_t first = share.in_slice.begin + begin;
              update(factors, op.nesterov, gradient_N + first, end - begin, parameter_N + first,
                     momentum_buffer_N != nullptr ? momentum_buffer_N + first : nullptr,
                     copy_N != nullptr ? copy_N + first : nullptr);
            });
          }
        },
        Resolve<const float>(binder, op.gradient), Resolve<const double>(binder, op.factor),
        Resolve<T>(binder, op.parameter), ResolveIfSet<float>(binder, op.momentum_buffer),
        ResolveIfSet<OtherElement<T>>(binder, op.copy));
  });
}

}  // namespace shardc::cpu
