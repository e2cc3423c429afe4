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
  const int64_t tp = plan.mesh.CoordinatesOf(binder.rank())[static_cast<size_t>(Axis::Tp)];
  std::vector<Part> parts;
  for (const Segment& segment : sub_vector.segments) {
    const Interval owned = OwnedSegment(plan, sub_vector, segment, binder.rank());
    if (!owned.empty()) {
      const Parameter& parameter = plan.parameters[segment.parameter];
      parts.push_back(
          {parameter.name,
           LogicalRange(parameter, plan.mesh, tp, {owned.begin - segment.begin, owned.end - segment.begin}),
           owned.begin - slice_begin});
    }
  }
  const View shard = binder.ViewOf(op.shard);
  // (The reader is asked for only now: a plan may be bound where no checkpoint was chosen.)
  return [op, shard, parts, &binder](const Moment& moment) -> Status {
    auto* out = shard.At<float>(moment);
    std::fill(out, out + shard.num_elements(), 0.0F);
    for (const Part& part : parts) {
      RETURN_IF_ERROR(binder.reader().ReadSegment(part.name, op.role, part.elements, out + part.begin));
    }
    return Success{};
  };
}

}  // namespace shardc
