// adamw, on the owned segments of the slice, in the order of operations of the CPU's kernel, which names the source.
// Padding is neither read nor written. The learning rate and the count of updates are read when the update is enqueued.
#include "runtime/kernels/cuda/updated_segments.h"

namespace shardc::cuda {

/// T: what parameters are kept in.
template <class T, int N>
__global__ void __launch_bounds__(UpdateThreads)
    UpdateByMoments(UpdatedSegments<AdamwFactors> all, const double* factor, const float* gradient_N, T* parameter_N,
                    float* exp_avg_N, float* exp_avg_sq_N, OtherElement<T>* copy_N) {
  const auto& segment = SegmentOfBlock(all);
  const AdamwFactors f = segment.factors;
  const auto scale = static_cast<float>(*factor);
  ForElementsOfBlock<N>(segment, [&](int64_t i, auto width) {
    constexpr int Width = decltype(width)::value;
    const Floats<Width> gradient = LoadFloats<Width>(gradient_N + i);
    Floats<Width> parameter = LoadFloats<Width>(parameter_N + i);
    Floats<Width> exp_avg = LoadFloats<Width>(exp_avg_N + i);
    Floats<Width> exp_avg_sq = LoadFloats<Width>(exp_avg_sq_N + i);
    UNROLL
    for (int k = 0; k < Width; ++k) {
      const float g = gradient.at[k] * scale;
      const float m = exp_avg.at[k] + (g - exp_avg.at[k]) * f.take1;
      const float v = exp_avg_sq.at[k] * f.keep2 + g * g * f.take2;
      const float denominator = sqrtf(v) / f.bias2_root + f.eps;
      parameter.at[k] = parameter.at[k] * f.decay - f.step_size * (m / denominator);
      exp_avg.at[k] = m;
      exp_avg_sq.at[k] = v;
    }
    const Pack<T, Width> kept = ToPack<T>(parameter);
    StorePack<Width>(parameter_N + i, kept);
    StoreFloats(exp_avg_N + i, exp_avg);
    StoreFloats(exp_avg_sq_N + i, exp_avg_sq);
    if (copy_N != nullptr) {
      // Of what is kept: where that was rounded, of the rounded.
      StoreFloats(copy_N + i, ToFloats(kept));
    }
  });
}

auto Bind(const op::Adamw& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.parameter).dtype, [&]<class T>() -> Kernel {
    const Plan& plan = binder.plan();
    CheckSliceLengths(plan, {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq, op.copy}, op.sub_vector,
                      binder.rank());
    const bool in_packs = IsUpdatedInPacks(binder, {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq, op.copy});
    return
        [stream = StreamOf(binder.queue()), gradient = Resolve<const float>(binder, op.gradient),
         factor = Resolve<const double>(binder, op.factor), parameter = Resolve<T>(binder, op.parameter),
         exp_avg = Resolve<float>(binder, op.exp_avg), exp_avg_sq = Resolve<float>(binder, op.exp_avg_sq),
         copy = ResolveIfSet<OtherElement<T>>(binder, op.copy),
         shares = UpdateShares(plan, op.sub_vector, binder.rank()), &scalars = std::as_const(binder.scalars()), op,
         kernel = in_packs ? UpdateByMoments<T, UpdateWidth> : UpdateByMoments<T, 1>](const Moment& moment) -> Status {
          return LaunchUpdates(stream, op, shares, scalars, kernel, factor.At(moment), gradient.At(moment),
                               parameter.At(moment), exp_avg.At(moment), exp_avg_sq.At(moment), copy.At(moment));
        };
  });
}

}  // namespace shardc::cuda
