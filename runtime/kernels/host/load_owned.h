// The owned elements of one parameter, or of what the optimizer keeps of it, out of the checkpoint that a run begins
// from. The rest of the slice stays as it is.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/host/owned_parameter.h"

namespace shardc::host {

/// Returns a kernel that calls `read(reader, piece, dtype, to)` for each piece of what the rank owns. (The reader is
/// asked for only when it runs: a restart binds the op too, and has none.)
template <class Op, class Read>
auto LoadOwned(const Op& op, Binder& binder, Read read) -> Kernel {
  const View shard = binder.ViewOf(op.shard);
  const auto owned = OwnedParameter(binder, op.sub_vector, op.parameter, shard);
  if (!owned) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  return [shard, owned = *owned, parameter = op.parameter, read = std::move(read), &binder,
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    CHECK(binder.seed() != nullptr, "{} is loaded, and no seed is open", binder.plan().parameters[parameter].name);
    const int64_t element = SizeOf(shard.dtype);
    std::byte* const first = shard.At<std::byte>(moment) + owned.in_slice.begin * element;
    return ForEachPiece(owned.elements, PieceBytes / element, [&](const BoxInterval& piece, int64_t offset) {
      return memory.Write(first + offset * element, piece.elements.size() * element,
                          [&](std::byte* to) { return read(*binder.seed(), piece, shard.dtype, to); });
    });
  };
}

}  // namespace shardc::host
