// Values as long as the slice of a sub-vector that a rank owns.
#pragma once

#include <string_view>

#include "compiler/ops/emitter.h"

namespace shardc {

inline auto SliceOf(const Plan& plan, SubVectorId id, DType dtype, Emitter& emitter, Category category,
                    std::string_view suffix, Arena arena) -> ValueId {
  const SubVector& sub_vector = plan.sub_vectors[id];
  const int64_t degree = plan.mesh.size(sub_vector.axes);
  const ValueId value = emitter.New({dtype, {sub_vector.length / degree}}, category,
                                    fmt::format("{}.{}", NameOf(plan, sub_vector), suffix), arena);
  if (degree > 1) {
    emitter.plan().values[value].placement[static_cast<size_t>(Axis::Dp)] = Placement::Shard(0);
  }
  return value;
}

/// Of the gradient, before it is summed over those that own the same.
inline auto GradientSlice(const Plan& plan, SubVectorId id, Emitter& emitter) -> ValueId {
  const ValueId slice = SliceOf(plan, id, DType::F32, emitter, Category::Gradients, "gradient", Arena::Transient);
  PlaceOver(LaterSumAxes(plan.sub_vectors[id], plan.mesh), Placement::Partial(),
            emitter.plan().values[slice].placement);
  return slice;
}

}  // namespace shardc
