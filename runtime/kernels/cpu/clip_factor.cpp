// clip_factor: what the gradients are multiplied with so that their norm is at most max_norm.
//
// A norm that is not finite gives no usable factor: NaN stays NaN and an infinite norm gives 0, so nothing that is
// broken is ever multiplied with 1 as if it were clean. Source: torch/nn/utils/clip_grad.py of PyTorch 2.11,
// clip_grad_norm_ (max_norm / (norm + 1e-6), at most 1).
#include <cmath>

#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

auto Bind(const op::ClipFactor& op, Binder& binder) -> Kernel {
  return BindOver(
      [max_norm = op.max_norm](const double* sum, double* norm, double* factor) {
        const double length = std::sqrt(*sum);
        const double ratio = max_norm / (length + 1e-6);
        *norm = length;
        // Written so that a NaN ratio is passed on.
        *factor = max_norm == 0 || ratio > 1 ? 1.0 : ratio;
      },
      Resolve<const double>(binder, op.sum), Resolve<double>(binder, op.norm), Resolve<double>(binder, op.factor));
}

}  // namespace shardc::cpu
