// residual_add: y = x + branch, the stream in f32 and the branch in bf16.
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return [x = Resolve<const float>(binder, op.x), branch = Resolve<const BFloat16>(binder, op.branch),
          y = Resolve<float>(binder, op.y), elements = binder.ViewOf(op.y).num_elements(),
          add = LoopsOf(binder.plan()).ResidualAdd](const Moment& moment) -> Status {
    const float* const x_N = x.At(moment);
    const BFloat16* const branch_N = branch.At(moment);
    float* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { add(x_N + begin, branch_N + begin, end - begin, y_N + begin); });
    return Success{};
  };
}

}  // namespace shardc
