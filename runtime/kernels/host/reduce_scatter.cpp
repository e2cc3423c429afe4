// reduce_scatter: shard = (what it holds +) this rank's slice of the sum of the group's full vectors.
#include "runtime/kernels/host/comm_span.h"

namespace shardc::host {

auto Bind(const op::ReduceScatter& op, Binder& binder) -> Kernel {
  const View full = binder.ViewOf(op.full);
  const View shard = binder.ViewOf(op.shard);
  return [&comm = binder.communicator(), &queue = binder.queue(), full, shard, scratch = ScratchOf(op.scratch, binder),
          axes = op.axes, accumulate = op.shard_onto.valid()](const Moment& moment) -> Status {
    return comm.ReduceScatter(queue, axes, CommSpanOf(full, moment), CommSpanOf(shard, moment),
                              CommSpanOf(scratch, moment), {full.dtype, shard.dtype}, accumulate);
  };
}

}  // namespace shardc::host
