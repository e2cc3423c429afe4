#include "compiler/passes/gradient_slice.h"

namespace shardc {

auto SliceOf(const Plan& plan, SubVectorId id, DType dtype, Emitter& emitter, Category category,
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

auto GradientSlice(const Plan& plan, SubVectorId id, Emitter& emitter) -> ValueId {
  const ValueId slice = SliceOf(plan, id, DType::F32, emitter, Category::Gradients, "gradient", Arena::Transient);
  PlaceOver(LaterSumAxes(plan.sub_vectors[id], plan.mesh), Placement::Partial(),
            emitter.plan().values[slice].placement);
  return slice;
}

auto ReduceGradient(SubVectorId id, ValueId full, DType terms, Emitter& emitter) -> ValueId {
  Plan& plan = emitter.plan();
  const Value whole = plan.values[full];
  if (terms != whole.dtype) {
    const ValueId narrow = emitter.New({terms, whole.shape}, Category::Gradients,
                                       NameOf(plan, plan.sub_vectors[id]) + ".terms", Arena::SharedTransient);
    plan.values[narrow].placement = whole.placement;
    emitter.Emit(op::Cast{.x = full, .y = narrow}).origin = {0, "precision.reduce"};
    full = narrow;
  }
  const ValueId slice = GradientSlice(plan, id, emitter);
  emitter.Emit(op::ReduceScatter{.full = full, .shard = slice, .shard_onto = {}, .axes = plan.sub_vectors[id].axes});
  return slice;
}

}  // namespace shardc
