// adamw, on the owned segments of the slice. Padding is neither read nor written.
//
// Source: Loshchilov, Hutter 2019, "Decoupled Weight Decay Regularization", alg. 2, by the formulas and in the order of
// torch/optim/adamw.py of PyTorch 2.11 (_single_tensor_adamw): factors in f64, elements in f32; where parameters are
// kept in bf16, they are rounded to it after each update.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cpu {

auto Bind(const op::Adamw& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.parameter).dtype, [&]<class T>() -> Kernel {
    // T: the type that parameters are kept in.
    const Plan& plan = binder.plan();
    CheckSliceLengths(plan, {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq, op.copy}, op.sub_vector,
                      binder.rank());
    return BindOver(
        [shares = UpdateShares(plan, op.sub_vector, binder.rank()), &scalars = std::as_const(binder.scalars()), op,
         update = LoopsOf(plan).Of<T>().Adamw](const float* gradient_N, const double* factor, T* parameter_N,
                                               float* exp_avg_N, float* exp_avg_sq_N, OtherElement<T>* copy_N) {
          for (const UpdateShare& share : shares) {
            AdamwFactors factors = FactorsOf(op, share, scalars);
            factors.gradient = static_cast<float>(*factor);
            ParallelRanges(share.in_slice.size(), ElementsPerThread, [&](int64_t begin, int64_t end) {
              const int64_t first = share.in_slice.begin + begin;
              update(factors, gradient_N + first, end - begin, parameter_N + first, exp_avg_N + first,
                     exp_avg_sq_N + first, copy_N != nullptr ? copy_N + first : nullptr);
            });
          }
        },
        Resolve<const float>(binder, op.gradient), Resolve<const double>(binder, op.factor),
        Resolve<T>(binder, op.parameter), Resolve<float>(binder, op.exp_avg), Resolve<float>(binder, op.exp_avg_sq),
        ResolveIfSet<OtherElement<T>>(binder, op.copy));
  });
}

}  // namespace shardc::cpu
