// The owned segments of the slices that kernels of the update and of the state work on.
#pragma once

#include "compiler/plan/local_parameter.h"

namespace shardc {

/// CHECKs that a value is as long as the slice of the sub-vector.
inline auto CheckSliceLength(const Plan& plan, ValueId value, SubVectorId id, int64_t rank) -> void {
  const int64_t slice = OwnedSlice(plan.sub_vectors[id], plan.mesh, rank).size();
  CHECK(plan.values[value].num_elements() == slice, "{} has {} elements, the slice {}", plan.values[value].name,
        plan.values[value].num_elements(), slice);
}

}  // namespace shardc
