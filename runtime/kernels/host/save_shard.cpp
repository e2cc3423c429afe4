// save_shard: hands the owned slice of one state vector to the checkpoint under way.
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

auto Bind(const op::SaveShard& op, Binder& binder) -> Kernel {
  const View shard = binder.ViewOf(op.shard);
  CheckpointWriter& writer = binder.writer();
  return [op, shard, &writer](const Moment& moment) -> Status {
    writer.AddShard(op.sub_vector, op.role, shard.At<std::byte>(moment));
    return Success{};
  };
}

}  // namespace shardc
