// read_scalar: takes a number out of memory into the scalar table.
#include "runtime/kernels/cpu/operand.h"

namespace shardc {

auto Bind(const op::ReadScalar& op, Binder& binder) -> Kernel {
  return [value = Resolve<const double>(binder, op.value), &scalars = binder.scalars(),
          to = op.to](const Moment& moment) -> Status {
    scalars[to] = *value.At(moment);
    return Success{};
  };
}

}  // namespace shardc
