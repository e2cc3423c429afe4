// The owned segments of the slices that kernels of the update and of the state work on.
#pragma once

#include <cmath>
#include <initializer_list>
#include <vector>

#include "compiler/plan/local_parameter.h"
#include "runtime/device/scalar_table.h"
#include "runtime/kernels/update_factors.h"

namespace shardc {

/// CHECKs that a value is as long as the slice of the sub-vector.
inline auto CheckSliceLength(const Plan& plan, ValueId value, SubVectorId id, int64_t rank) -> void {
  const int64_t slice = OwnedSlice(plan.sub_vectors[id], plan.mesh, rank).size();
  CHECK(plan.values[value].num_elements() == slice, "{} has {} elements, the slice {}", plan.values[value].name,
        plan.values[value].num_elements(), slice);
}

/// CHECKs the lengths of the values of an update that are set.
inline auto CheckSliceLengths(const Plan& plan, std::initializer_list<ValueId> values, SubVectorId id, int64_t rank)
    -> void {
  for (const ValueId value : values) {
    if (value.valid()) {
      CheckSliceLength(plan, value, id, rank);
    }
  }
}

/// The elements that an update takes at once: those that a rank owns of one parameter, and the settings of its group.
struct UpdateShare {
  Interval in_slice;
  double weight_decay = 0;
  double lr_scale = 1;
  /// The number of updates before the first that the moments have seen.
  int64_t first_update = 0;
};

/// Returns a share for each owned segment, in the order of the table; padding is in none.
inline auto UpdateShares(const Plan& plan, SubVectorId id, int64_t rank) -> std::vector<UpdateShare> {
  std::vector<UpdateShare> shares;
  for (const OwnedSegment& segment : OwnedSegments(plan, id, rank)) {
    const Parameter& parameter = plan.parameters[segment.parameter];
    const OptimizerGroup& group = plan.groups[parameter.group];
    shares.push_back({segment.in_slice, group.weight_decay, group.lr_scale, parameter.first_update});
  }
  return shares;
}

/// Returns the factors of a share's update without that of its gradient, which a kernel reads when the update runs.
inline auto FactorsOf(const op::Adamw& op, const UpdateShare& share, const ScalarTable& scalars) -> AdamwFactors {
  // `updates` counts the updates before this one.
  const double t = scalars[op.updates] - static_cast<double>(share.first_update) + 1;
  const double bias1 = 1 - std::pow(op.beta1, t);
  const double bias2 = 1 - std::pow(op.beta2, t);
  const double lr = scalars[op.lr] * share.lr_scale;
  return {.decay = static_cast<float>(1 - lr * share.weight_decay),
          .take1 = static_cast<float>(1 - op.beta1),
          .keep2 = static_cast<float>(op.beta2),
          .take2 = static_cast<float>(1 - op.beta2),
          .step_size = static_cast<float>(lr / bias1),
          .bias2_root = static_cast<float>(std::sqrt(bias2)),
          .eps = static_cast<float>(op.eps)};
}
inline auto FactorsOf(const op::Sgd& op, const UpdateShare& share, const ScalarTable& scalars) -> SgdFactors {
  return {.decay = static_cast<float>(share.weight_decay),
          .momentum = static_cast<float>(op.momentum),
          .lr = static_cast<float>(scalars[op.lr] * share.lr_scale)};
}

}  // namespace shardc
