// load_parameter: the owned elements of one parameter, out of the seed; the rest of the slice stays as it is.
#include <cstddef>

#include "compiler/plan/init_rule.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/host/owned_parameter.h"

namespace shardc::host {

auto Bind(const op::LoadParameter& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const Parameter& parameter = plan.parameters[op.parameter];
  const auto block = LoadedBlockOf(parameter);
  const SeedTensor* const tensor = block ? plan.seed.Find(block->tensor) : nullptr;
  CHECK(tensor != nullptr, "{} is loaded: {}", parameter.name, parameter.init);
  const View shard = binder.ViewOf(op.shard);
  const auto owned = OwnedParameter(binder, op.sub_vector, op.parameter, shard);
  if (!owned) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  // (The seed is asked for only now: a restart binds this op too, and has none.)
  return [shard, owned = *owned, block = *block, tensor, &parameter, &binder,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    CHECK(binder.seed() != nullptr, "{} is loaded, and no seed is open", parameter.name);
    const int64_t element = SizeOf(shard.dtype);
    std::byte* const first = shard.At<std::byte>(moment) + owned.in_slice.begin * element;
    return ForEachPiece(owned.elements, PieceBytes / element, [&](const BoxInterval& piece, int64_t offset) {
      return memory.Write(first + offset * element, piece.elements.size() * element, [&](std::byte* to) {
        return binder.seed()->ReadElements(tensor->name, StateRole::Parameter,
                                           InTensor(block, tensor->shape, parameter, piece), shard.dtype, to);
      });
    });
  };
}

}  // namespace shardc::host
