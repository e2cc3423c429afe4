// increment: adds 1 to a scalar of the table.
#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::Increment& op, Binder& binder) -> Kernel {
  return [&scalars = binder.scalars(), scalar = op.scalar](const Moment&) -> Status {
    scalars[scalar] += 1;
    return Success{};
  };
}

}  // namespace shardc::host
