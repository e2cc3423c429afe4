// all_reduce: y = the sum of the group's x, over the bytes of x.
#include "runtime/kernels/host/comm_span.h"

namespace shardc::host {

auto Bind(const op::AllReduce& op, Binder& binder) -> Kernel {
  return [&comm = binder.communicator(), &queue = binder.queue(), y = binder.ViewOf(op.y),
          scratch = ScratchOf(op.scratch, binder), axes = op.axes](const Moment& moment) -> Status {
    return comm.AllReduce(queue, axes, CommSpanOf(y, moment), CommSpanOf(scratch, moment), y.dtype);
  };
}

}  // namespace shardc::host
