// reset: sets a scalar of the table to 0.
#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::Reset& op, Binder& binder) -> Kernel {
  return [&scalars = binder.scalars(), scalar = op.scalar](const Moment&) -> Status {
    scalars[scalar] = 0;
    return Success{};
  };
}

}  // namespace shardc::host
