// load_moment: the owned elements of what the optimizer keeps of one parameter, out of the checkpoint that the run
// continues; the rest of the slice stays as it is.
#include <cstddef>

#include "compiler/plan/init_rule.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/host/owned_parameter.h"

namespace shardc::host {

auto Bind(const op::LoadMoment& op, Binder& binder) -> Kernel {
  const Parameter& parameter = binder.plan().parameters[op.parameter];
  const View shard = binder.ViewOf(op.shard);
  const auto owned = OwnedParameter(binder, op.sub_vector, op.parameter, shard);
  if (!owned) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  return [shard, owned = *owned, role = op.role, tensor = LoadedBlockOf(parameter)->tensor, &binder,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    CHECK(binder.seed() != nullptr, "{} of {} is loaded, and no checkpoint is open", ToText(role), tensor);
    const int64_t element = SizeOf(shard.dtype);
    std::byte* const first = shard.At<std::byte>(moment) + owned.in_slice.begin * element;
    return ForEachPiece(owned.elements, PieceBytes / element, [&](const BoxInterval& piece, int64_t offset) {
      return memory.Write(first + offset * element, piece.elements.size() * element, [&](std::byte* to) {
        return binder.seed()->ReadElements(tensor, role, piece, shard.dtype, to);
      });
    });
  };
}

}  // namespace shardc::host
