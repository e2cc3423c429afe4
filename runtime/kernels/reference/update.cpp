// N elements of the owned slice. Padding is neither read nor written.
#include "runtime/kernels/reference/tensor.h"

#include <cmath>

#include "runtime/kernels/owned_segments.h"

namespace shardc::reference {

/// Elements of a slice, over the bytes of a value.
static auto Part(const at::Tensor& whole_N, Interval in_slice) -> at::Tensor {
  return whole_N.slice(0, in_slice.begin, in_slice.end);
}

auto Bind(const op::SumSquares& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  return MakeKernel([gradient = Elements(binder, op.gradient), sum = Resolve<double>(binder, op.sum),
                     bad = Resolve<int64_t>(binder, op.bad), adds = AddsOnto(binder, op.sum, op.sum_onto),
                     keeps_least = AddsOnto(binder, op.bad, op.bad_onto),
                     segments = OwnedSegments(plan, op.sub_vector, binder.rank()),
                     num_parameters = int64_t{plan.parameters.size()}](const Moment& moment) {
    const at::Tensor gradient_N = gradient.Read(moment);
    double total = adds ? *sum.At(moment) : 0;
    int64_t least_bad = keeps_least ? *bad.At(moment) : num_parameters;
    for (const OwnedSegment& segment : segments) {
      const at::Tensor part = Part(gradient_N, segment.in_slice);
      if (segment.counted_in_norm) {
        total += part.square().sum().item<double>();
      }
      if (!part.isfinite().all().item<bool>()) {
        least_bad = std::min(least_bad, int64_t{segment.parameter.index});
      }
    }
    *sum.At(moment) = total;
    *bad.At(moment) = least_bad;
  });
}

/// Returns the elements of a value that an op may lack.
static auto ElementsIfSet(Binder& binder, ValueId value) -> std::optional<Elements> {
  return value.valid() ? std::optional(Elements(binder, value)) : std::nullopt;
}

/// Source: Loshchilov, Hutter 2019, "Decoupled Weight Decay Regularization", alg. 2.
auto Bind(const op::Adamw& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  return MakeKernel([gradient = Elements(binder, op.gradient), factor = Resolve<const double>(binder, op.factor),
                     parameter = Elements(binder, op.parameter), exp_avg = Elements(binder, op.exp_avg),
                     exp_avg_sq = Elements(binder, op.exp_avg_sq), copy = ElementsIfSet(binder, op.copy),
                     shares = UpdateShares(plan, op.sub_vector, binder.rank()),
                     &scalars = std::as_const(binder.scalars()), op](const Moment& moment) {
    const at::Tensor gradient_N = gradient.Read(moment) * *factor.At(moment);
    const at::Tensor parameter_N = parameter.Read(moment);
    const at::Tensor exp_avg_N = exp_avg.Read(moment);
    const at::Tensor exp_avg_sq_N = exp_avg_sq.Read(moment);
    for (const auto& [in_slice, weight_decay, lr_scale, first_update] : shares) {
      // `updates` counts the updates before this one.
      const double t = scalars[op.updates] - static_cast<double>(first_update) + 1;
      const double bias1 = 1 - std::pow(op.beta1, t);
      const double bias2 = 1 - std::pow(op.beta2, t);
      const double lr = scalars[op.lr] * lr_scale;
      const at::Tensor g = Part(gradient_N, in_slice);
      const at::Tensor m = Part(exp_avg_N, in_slice) * op.beta1 + g * (1 - op.beta1);
      const at::Tensor v = Part(exp_avg_sq_N, in_slice) * op.beta2 + g.square() * (1 - op.beta2);
      const at::Tensor step = m / bias1 / ((v / bias2).sqrt() + op.eps);
      Part(exp_avg.InPlace(moment), in_slice).copy_(m);
      Part(exp_avg_sq.InPlace(moment), in_slice).copy_(v);
      const at::Tensor updated = Part(parameter.InPlace(moment), in_slice);
      updated.copy_(Part(parameter_N, in_slice) * (1 - lr * weight_decay) - step * lr);
      if (copy) {
        Part(copy->InPlace(moment), in_slice).copy_(updated);
      }
    }
  });
}

/// Source: torch/optim/sgd.py of PyTorch 2.11 (_single_tensor_sgd), dampening 0.
auto Bind(const op::Sgd& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  return MakeKernel([gradient = Elements(binder, op.gradient), factor = Resolve<const double>(binder, op.factor),
                     parameter = Elements(binder, op.parameter),
                     momentum_buffer = ElementsIfSet(binder, op.momentum_buffer), copy = ElementsIfSet(binder, op.copy),
                     shares = UpdateShares(plan, op.sub_vector, binder.rank()),
                     &scalars = std::as_const(binder.scalars()), op](const Moment& moment) {
    const at::Tensor gradient_N = gradient.Read(moment) * *factor.At(moment);
    const at::Tensor parameter_N = parameter.Read(moment);
    for (const auto& [in_slice, weight_decay, lr_scale, first_update] : shares) {
      at::Tensor g = Part(gradient_N, in_slice) + Part(parameter_N, in_slice) * weight_decay;
      if (momentum_buffer) {
        const at::Tensor b = Part(momentum_buffer->Read(moment), in_slice) * op.momentum + g;
        Part(momentum_buffer->InPlace(moment), in_slice).copy_(b);
        g = op.nesterov ? g + b * op.momentum : b;
      }
      const at::Tensor updated = Part(parameter.InPlace(moment), in_slice);
      updated.copy_(Part(parameter_N, in_slice) - g * (scalars[op.lr] * lr_scale));
      if (copy) {
        Part(copy->InPlace(moment), in_slice).copy_(updated);
      }
    }
  });
}

}  // namespace shardc::reference
