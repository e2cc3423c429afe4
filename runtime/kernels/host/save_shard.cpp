// save_shard: hands the owned slice of one state vector to the checkpoint under way.
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::SaveShard& op, Binder& binder) -> Kernel {
  const View shard = binder.ViewOf(op.shard);
  CheckpointWriter& writer = binder.writer();
  return [op, shard, &writer, memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    const auto* const slice = shard.At<std::byte>(moment);
    writer.AddShard(op.sub_vector, op.role,
                    [&](int64_t begin, int64_t bytes) { return memory.Read(slice + begin, bytes); });
    return Success{};
  };
}

}  // namespace shardc::host
