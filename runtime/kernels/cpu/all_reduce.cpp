// all_reduce: y = the sum of the group's x, over the bytes of x. In pieces that the communicator's staging takes.
#include <algorithm>

#include "runtime/kernels/cpu/comm_span.h"

namespace shardc {

auto Bind(const op::AllReduce& op, Binder& binder) -> Kernel {
  return [&comm = binder.communicator(), y = binder.ViewOf(op.y), axes = op.axes](const Moment& moment) -> Status {
    const int64_t piece = Communicator::MaxSmallBytes / SizeOf(y.dtype);
    auto* data = y.At<std::byte>(moment);
    for (int64_t begin = 0; begin < y.num_elements(); begin += piece) {
      const int64_t count = std::min(piece, y.num_elements() - begin);
      RETURN_IF_ERROR(comm.AllReduce(axes, data + begin * SizeOf(y.dtype), count, y.dtype, ReduceOp::Sum));
    }
    return Success{};
  };
}

}  // namespace shardc
