// The stretches of a rank's slice that hold parameters, resolved at bind: what the update's kernels loop over.
#pragma once

#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

struct OwnedStretch {
  /// In elements of the slice.
  Interval elements;
  ParameterId parameter;
  bool counted_in_norm = true;
};

/// The owned stretches in the order of the table; padding is in none.
inline auto OwnedStretches(const Plan& plan, SubVectorId id, int64_t rank) -> std::vector<OwnedStretch> {
  const SubVector& sub_vector = plan.sub_vectors[id];
  const Interval slice = OwnedSliceOf(sub_vector, plan.mesh, rank);
  std::vector<OwnedStretch> stretches;
  for (const Segment& segment : sub_vector.segments) {
    const Interval owned = OwnedSegment(plan, sub_vector, segment, rank);
    if (!owned.empty()) {
      stretches.push_back(
          {{owned.begin - slice.begin, owned.end - slice.begin}, segment.parameter, segment.counted_in_norm});
    }
  }
  return stretches;
}

/// CHECKs that a value is as long as the slice of the sub-vector.
inline auto CheckSliceLength(const Plan& plan, ValueId value, SubVectorId id, int64_t rank) -> void {
  const int64_t slice = OwnedSliceOf(plan.sub_vectors[id], plan.mesh, rank).size();
  CHECK(plan.values[value].num_elements() == slice, "{} has {} elements, the slice {}", plan.values[value].name,
        plan.values[value].num_elements(), slice);
}

}  // namespace shardc
