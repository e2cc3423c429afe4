// sgd, on the owned segments of the slice, in the order of operations of the CPU's kernel, which names the source.
// Padding is neither read nor written. The learning rate is read when the update is enqueued.
#include "runtime/kernels/cuda/updated_segments.h"

namespace shardc::cuda {

/// T: the type that parameters are kept in. `momentum_buffer_N`, `copy_N`: null if the op has none.
template <class T, int N>
__global__ void __launch_bounds__(UpdateThreads)
    UpdateByGradient(UpdatedSegments<SgdFactors> all, bool nesterov, const double* factor, const float* gradient_N,
                     T* parameter_N, float* momentum_buffer_N, OtherElement<T>* copy_N) {
  const auto& segment = SegmentOfBlock(all);
  const SgdFactors f = segment.factors;
  const auto scale = static_cast<float>(*factor);
  ForElementsOfBlock<N>(segment, [&](int64_t i, auto width) {
    constexpr int Width = decltype(width)::value;
    Floats<Width> gradient = LoadFloats<Width>(gradient_N + i);
    Floats<Width> parameter = LoadFloats<Width>(parameter_N + i);
    UNROLL
    for (int k = 0; k < Width; ++k) {
      gradient.at[k] = gradient.at[k] * scale + parameter.at[k] * f.decay;
    }
    if (momentum_buffer_N != nullptr) {
      Floats<Width> buffer = LoadFloats<Width>(momentum_buffer_N + i);
      UNROLL
      for (int k = 0; k < Width; ++k) {
        const float b = buffer.at[k] * f.momentum + gradient.at[k];
        buffer.at[k] = b;
        gradient.at[k] = nesterov ? gradient.at[k] + b * f.momentum : b;
      }
      StoreFloats(momentum_buffer_N + i, buffer);
    }
    UNROLL
    for (int k = 0; k < Width; ++k) {
      parameter.at[k] = parameter.at[k] - f.lr * gradient.at[k];
    }
    const Pack<T, Width> kept = ToPack<T>(parameter);
    StorePack<Width>(parameter_N + i, kept);
    if (copy_N != nullptr) {
      // Of what is kept: where that was rounded, of the rounded.
      StoreFloats(copy_N + i, ToFloats(kept));
    }
  });
}

auto Bind(const op::Sgd& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.parameter).dtype, [&]<class T>() -> Kernel {
    const Plan& plan = binder.plan();
    CheckSliceLengths(plan, {op.gradient, op.parameter, op.momentum_buffer, op.copy}, op.sub_vector, binder.rank());
    const bool in_packs = IsUpdatedInPacks(binder, {op.gradient, op.parameter, op.momentum_buffer, op.copy});
    return [stream = StreamOf(binder.queue()), gradient = Resolve<const float>(binder, op.gradient),
            factor = Resolve<const double>(binder, op.factor), parameter = Resolve<T>(binder, op.parameter),
            momentum_buffer = ResolveIfSet<float>(binder, op.momentum_buffer),
            copy = ResolveIfSet<OtherElement<T>>(binder, op.copy),
            shares = UpdateShares(plan, op.sub_vector, binder.rank()), &scalars = std::as_const(binder.scalars()), op,
            kernel =
                in_packs ? UpdateByGradient<T, UpdateWidth> : UpdateByGradient<T, 1>](const Moment& moment) -> Status {
      return LaunchUpdates(stream, op, shares, scalars, kernel, op.nesterov, factor.At(moment), gradient.At(moment),
                           parameter.At(moment), momentum_buffer.At(moment), copy.At(moment));
    };
  });
}

}  // namespace shardc::cuda
