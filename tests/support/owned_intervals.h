// What a rank owns of a sub-vector, by the logical tensors that lie there.
#pragma once

#include "compiler/plan/local_parameter.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Calls `function(parameter, begin, end, at)` for each interval [begin, end) of a logical tensor, flat, that lies in
/// the slice of `rank` as one interval, from element `at` of the slice on.
template <class Function>
auto ForEachOwnedInterval(const Plan& plan, const SubVector& sub_vector, int64_t rank, const Function& function)
    -> void {
  const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
  for (const Segment& segment : sub_vector.segments) {
    const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
    ForEachMatrixInterval(LogicalInterval(plan, segment, owned, rank), [&](int64_t begin, int64_t end, int64_t offset) {
      function(plan.parameters[segment.parameter], begin, end, owned.begin - slice_begin + offset);
    });
  }
}

}  // namespace shardc
