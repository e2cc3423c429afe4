// restore_shard: the owned elements of one state vector out of the chosen checkpoint; padding becomes zero. An
// evaluation leaves moments alone: nothing reads them there, and the checkpoint may have none.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/plan/local_parameter.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

auto Bind(const op::RestoreShard& op, Binder& binder) -> Kernel {
  struct Part {
    std::string name;
    OwnedPart owned;
  };
  const Plan& plan = binder.plan();
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  std::vector<Part> parts;
  for (const Segment& segment : sub_vector.segments) {
    if (const auto owned = OwnedPartOf(plan, sub_vector, segment, binder.rank())) {
      parts.push_back({plan.parameters[segment.parameter].name, *owned});
    }
  }
  const View shard = binder.ViewOf(op.shard);
  // (The reader is asked for only now: a plan may be bound where no checkpoint was chosen.)
  return [op, shard, parts, &binder](const Moment& moment) -> Status {
    if (!binder.reader().Gives(op.role)) {
      return Success{};
    }
    auto* out = shard.At<std::byte>(moment);
    std::fill_n(out, shard.num_elements() * SizeOf(shard.dtype), std::byte{0});
    for (const Part& part : parts) {
      RETURN_IF_ERROR(binder.reader().ReadSegment(part.name, op.role, part.owned.elements, shard.dtype,
                                                  out + part.owned.in_slice.begin * SizeOf(shard.dtype)));
    }
    return Success{};
  };
}

}  // namespace shardc
