// all_gather: full = the shards of the group, in rank order.
#include "runtime/kernels/host/comm_span.h"

namespace shardc::host {

auto Bind(const op::AllGather& op, Binder& binder) -> Kernel {
  return [&comm = binder.communicator(), &queue = binder.queue(), shard = binder.ViewOf(op.shard),
          full = binder.ViewOf(op.full), scratch = ScratchOf(op.scratch, binder),
          axes = op.axes](const Moment& moment) -> Status {
    return comm.AllGather(queue, axes, CommSpanOf(shard, moment), CommSpanOf(full, moment),
                          CommSpanOf(scratch, moment));
  };
}

}  // namespace shardc::host
