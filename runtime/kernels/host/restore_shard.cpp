// restore_shard: the owned elements of one state vector out of the chosen checkpoint; padding becomes zero. An
// evaluation leaves moments alone: nothing reads them there, and the checkpoint may have none.
#include <algorithm>

#include "compiler/plan/local_parameter.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::RestoreShard& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const View shard = binder.ViewOf(op.shard);
  // (The reader is asked for only now: a plan may be bound before a checkpoint is chosen.)
  return [op, shard, segments = OwnedSegments(plan, op.sub_vector, binder.rank()), &plan, &binder,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    if (!binder.reader().Gives(op.role)) {
      return Success{};
    }
    const int64_t bytes = shard.num_elements() * SizeOf(shard.dtype);
    return memory.Write(shard.At<std::byte>(moment), bytes, [&](std::byte* out) -> Status {
      std::fill_n(out, bytes, std::byte{0});
      for (const OwnedSegment& segment : segments) {
        RETURN_IF_ERROR(binder.reader().ReadElements(plan.parameters[segment.parameter].name, op.role, segment.elements,
                                                     shard.dtype, out + segment.in_slice.begin * SizeOf(shard.dtype)));
      }
      return Success{};
    });
  };
}

}  // namespace shardc::host
