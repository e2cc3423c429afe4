#include "compiler/passes/gradient_slice.h"

namespace shardc {

auto MakeSlice(SubVectorId id, DType dtype, Emitter& emitter, Category category, std::string_view suffix, Arena arena)
    -> ValueId {
  Plan& plan = emitter.plan();
  const SubVector& sub_vector = plan.sub_vectors[id];
  const ValueId value = emitter.New({dtype, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, category,
                                    fmt::format("{}.{}", NameOf(plan, sub_vector), suffix), arena);
  SetPlacement(Spread(plan.mesh, sub_vector.axes), Placement::Shard(0), plan.values[value].placement);
  plan.values[value].role = ValueRole::Of(id);
  return value;
}

auto GradientSlice(SubVectorId id, Emitter& emitter) -> ValueId {
  Plan& plan = emitter.plan();
  const ValueId slice = MakeSlice(id, DType::F32, emitter, Category::Gradients, "gradient", Arena::Transient);
  SetPlacement(CopyAxes(plan.sub_vectors[id], plan.mesh), Placement::Partial(), plan.values[slice].placement);
  return slice;
}

auto ReduceGradient(SubVectorId id, ValueId full, DType terms, Emitter& emitter) -> ValueId {
  Plan& plan = emitter.plan();
  const Value whole = plan.values[full];
  if (terms != whole.dtype) {
    const ValueId narrow = emitter.New({terms, whole.shape}, Category::Gradients,
                                       NameOf(plan, plan.sub_vectors[id]) + ".terms", Arena::SharedTransient);
    plan.values[narrow].placement = whole.placement;
    plan.values[narrow].role = ValueRole::Of(id);
    emitter.Emit(op::Cast{.x = full, .y = narrow}).origin = {0, "precision.reduce"};
    full = narrow;
  }
  const ValueId slice = GradientSlice(id, emitter);
  emitter.Emit(op::ReduceScatter{.full = full, .shard = slice, .shard_onto = {}, .axes = plan.sub_vectors[id].axes});
  return slice;
}

}  // namespace shardc
