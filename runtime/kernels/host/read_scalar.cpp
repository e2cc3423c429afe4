// read_scalar: takes a number out of memory into the scalar table.
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::ReadScalar& op, Binder& binder) -> Kernel {
  return [value = CheckedView<double>(binder, op.value), &scalars = binder.scalars(), to = op.to,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    ASSIGN_OR_RETURN(scalars[to], memory.First<double>(value, moment));
    return Success{};
  };
}

}  // namespace shardc::host
