// The owned segments of the slices that kernels of the update and of the state work on.
#pragma once

#include <vector>

#include "compiler/plan/local_parameter.h"

namespace shardc {

/// CHECKs that a value is as long as the slice of the sub-vector.
inline auto CheckSliceLength(const Plan& plan, ValueId value, SubVectorId id, int64_t rank) -> void {
  const int64_t slice = OwnedSlice(plan.sub_vectors[id], plan.mesh, rank).size();
  CHECK(plan.values[value].num_elements() == slice, "{} has {} elements, the slice {}", plan.values[value].name,
        plan.values[value].num_elements(), slice);
}

/// What an update takes at once: the elements that a rank owns of one parameter, and the settings of its group.
struct UpdateShare {
  Interval in_slice;
  double weight_decay = 0;
  double lr_scale = 1;
};
/// A share for each owned segment, in the order of the table; padding is in none.
inline auto UpdateShares(const Plan& plan, SubVectorId id, int64_t rank) -> std::vector<UpdateShare> {
  std::vector<UpdateShare> shares;
  for (const OwnedSegment& segment : OwnedSegments(plan, id, rank)) {
    const OptimizerGroup& group = plan.groups[plan.parameters[segment.parameter].group];
    shares.push_back({segment.in_slice, group.weight_decay, group.lr_scale});
  }
  return shares;
}

}  // namespace shardc
