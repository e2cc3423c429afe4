// restore_shard: the owned elements of one state vector out of the chosen checkpoint; padding becomes zero.
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
    /// Of the logical tensor.
    BoxRange elements;
    /// In the slice.
    int64_t begin = 0;
  };
  const Plan& plan = binder.plan();
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const int64_t slice_begin = OwnedSliceOf(sub_vector, plan.mesh, binder.rank()).begin;
  std::vector<Part> parts;
  for (const Segment& segment : sub_vector.segments) {
    const Interval owned = OwnedSegment(plan, sub_vector, segment, binder.rank());
    if (!owned.empty()) {
      parts.push_back({plan.parameters[segment.parameter].name, LogicalRange(plan, segment, owned, binder.rank()),
                       owned.begin - slice_begin});
    }
  }
  const View shard = binder.ViewOf(op.shard);
  // (The reader is asked for only now: a plan may be bound where no checkpoint was chosen.)
  return [op, shard, parts, &binder](const Moment& moment) -> Status {
    auto* out = shard.At<std::byte>(moment);
    std::fill_n(out, shard.num_elements() * SizeOf(shard.dtype), std::byte{0});
    for (const Part& part : parts) {
      RETURN_IF_ERROR(binder.reader().ReadSegment(part.name, op.role, part.elements, shard.dtype,
                                                  out + part.begin * SizeOf(shard.dtype)));
    }
    return Success{};
  };
}

}  // namespace shardc
