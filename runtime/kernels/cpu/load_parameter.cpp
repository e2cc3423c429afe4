// load_parameter: the owned elements of one parameter, out of the seed; the rest of the slice stays as it is.
#include <algorithm>
#include <cstddef>
#include <string>

#include "compiler/plan/init_rule.h"
#include "compiler/plan/local_parameter.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

auto Bind(const op::LoadParameter& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const Parameter& parameter = plan.parameters[op.parameter];
  const auto segment = std::find_if(sub_vector.segments.begin(), sub_vector.segments.end(),
                                    [&](const Segment& candidate) { return candidate.parameter == op.parameter; });
  CHECK(segment != sub_vector.segments.end(), "{} does not lie in v{}", parameter.name, op.sub_vector.index);
  const Interval owned = OwnedSegment(plan, sub_vector, *segment, binder.rank());
  if (owned.empty()) {
    return [](const Moment&) -> Status { return Success{}; };
  }
  const int64_t at = owned.begin - OwnedSliceOf(sub_vector, plan.mesh, binder.rank()).begin;
  const View shard = binder.ViewOf(op.shard);
  CHECK(at + owned.size() <= shard.num_elements(), "{} lies outside the slice", parameter.name);
  const BoxRange elements = LogicalRange(plan, *segment, owned, binder.rank());
  // (The seed is asked for only now: a restart binds this op too, and has none.)
  return [shard, at, elements, &parameter, &binder](const Moment& moment) -> Status {
    CHECK(binder.seed() != nullptr, "{} is loaded, and no seed is open", parameter.name);
    return binder.seed()->ReadSegment(*LoadedTensorOf(parameter), StateRole::Parameter, elements, shard.dtype,
                                      shard.At<std::byte>(moment) + at * SizeOf(shard.dtype));
  };
}

}  // namespace shardc
