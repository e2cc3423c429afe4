#include "compiler/passes/sum_over_replicas.h"

#include <unordered_map>

#include "compiler/ops/emitter.h"

namespace shardc {

/// Moves the gradients of these sub-vectors into one buffer; the value of the whole.
static auto SideBySide(Plan& plan, const std::vector<SubVectorId>& ids, Emitter& emitter) -> ValueId {
  int64_t length = 0;
  std::unordered_map<BufferId, int64_t> begin_of;
  for (const SubVectorId id : ids) {
    const Value& gradient = plan.values[plan.sub_vectors[id].gradient];
    begin_of[gradient.buffer] = length * SizeOf(DType::F32);
    length += gradient.num_elements();
  }
  const ValueId all = emitter.New({DType::F32, {length}}, Category::Gradients, "gradients.replicated");
  for (Value& value : plan.values) {
    if (const auto found = begin_of.find(value.buffer); found != begin_of.end()) {
      value.buffer = plan.values[all].buffer;
      value.offset.base += found->second;
    }
  }
  return all;
}

auto SumOverReplicas(Plan& plan, Section& section) -> void {
  Emitter emitter(&plan, &section.ops, PassKind::Shard);
  std::vector<SubVectorId> whole_ones;
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    SubVector& sub_vector = plan.sub_vectors[id];
    const AxisSet axes = CopyAxes(sub_vector, plan.mesh);
    if (!sub_vector.gradient.valid() || axes == AxisSet{}) {
      continue;
    }
    if (IsWhole(sub_vector, plan.mesh)) {
      whole_ones.push_back(id);
      continue;
    }
    emitter.set_origin({0, "mesh.replicate"});
    const Value gradient = plan.values[sub_vector.gradient];
    const ValueId sum = emitter.Alias(sub_vector.gradient, {gradient.dtype, gradient.shape}, gradient.name + ".whole");
    plan.values[sum].placement = gradient.placement;
    SetPlacement(axes, {}, plan.values[sum].placement);
    emitter.Emit(op::AllReduce{.x = sub_vector.gradient, .y = sum, .axes = axes});
    plan.sub_vectors[id].gradient = sum;
  }
  if (whole_ones.empty()) {
    return;
  }
  emitter.set_origin({0, "mesh.tp"});
  const AxisSet axes = CopyAxes(plan.sub_vectors[whole_ones.front()], plan.mesh);
  const ValueId all = SideBySide(plan, whole_ones, emitter);
  const ValueId sum = emitter.Alias(all, {DType::F32, plan.values[all].shape}, "gradients.replicated.whole");
  emitter.Emit(op::AllReduce{.x = all, .y = sum, .axes = axes});
  Placements whole = plan.values[all].placement = plan.values[plan.sub_vectors[whole_ones.front()].gradient].placement;
  SetPlacement(axes, {}, whole);
  plan.values[sum].placement = whole;
  for (const SubVectorId id : whole_ones) {
    const Value own = plan.values[plan.sub_vectors[id].gradient];
    const ValueId view = emitter.View(own.buffer, own.offset, {own.dtype, own.shape}, own.name + ".whole");
    plan.values[view].placement = whole;
    plan.values[view].role = own.role;
    plan.sub_vectors[id].gradient = view;
  }
}

}  // namespace shardc
