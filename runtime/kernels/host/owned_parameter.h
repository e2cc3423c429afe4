// The owned segment of one parameter, resolved at bind: what the kernels of the init section write.
#pragma once

#include <algorithm>
#include <optional>

#include "compiler/plan/local_parameter.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Nothing if the rank owns none of it. CHECKs that the parameter lies in the sub-vector, and that `shard` holds the
/// owned segment.
inline auto OwnedParameter(const Binder& binder, SubVectorId id, ParameterId parameter, const View& shard)
    -> std::optional<OwnedSegment> {
  const Plan& plan = binder.plan();
  const SubVector& sub_vector = plan.sub_vectors[id];
  const auto segment = std::find_if(sub_vector.segments.begin(), sub_vector.segments.end(),
                                    [&](const Segment& candidate) { return candidate.parameter == parameter; });
  CHECK(segment != sub_vector.segments.end(), "{} does not lie in v{}", plan.parameters[parameter].name, id.index);
  const auto owned = OwnedSegmentOf(plan, sub_vector, *segment, binder.rank());
  CHECK(!owned || owned->in_slice.end <= shard.num_elements(), "{} lies outside the slice",
        plan.parameters[parameter].name);
  return owned;
}

}  // namespace shardc
