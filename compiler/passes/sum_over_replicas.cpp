#include "compiler/passes/sum_over_replicas.h"

#include <map>
#include <unordered_map>

#include "compiler/base/devices.h"
#include "compiler/ops/emitter.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/loops.h"

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

/// Moves each sum that the section ends with to right after the last op before it that writes its gradient, unless that
/// op is in the loop over microbatches: there the gradient is not complete before the loop ends.
static auto MoveAfterWriters(const Plan& plan, Section& section, size_t first_sum) -> void {
  std::unordered_map<BufferId, size_t> last_write;
  LoopTracker loops;
  for (size_t i = 0; i < first_sum; ++i) {
    loops.Enter(section.ops[i]);
    for (const Access& access : AccessesOf(section.ops[i].body)) {
      if (access.kind != AccessKind::Read) {
        last_write[plan.values[access.value].buffer] = loops.in_loop() ? first_sum - 1 : i;
      }
    }
  }
  std::vector<Op> sums(section.ops.begin() + static_cast<std::ptrdiff_t>(first_sum), section.ops.end());
  std::multimap<size_t, Op> after;
  for (Op& sum : sums) {
    const size_t writer = last_write.at(plan.values[CollectiveOf(sum)->from].buffer);
    if (writer != first_sum - 1) {
      sum.phase = section.ops[writer].phase;
      sum.layer = section.ops[writer].layer;
    }
    after.emplace(writer, std::move(sum));
  }
  std::vector<Op> ops;
  for (size_t i = 0; i < first_sum; ++i) {
    ops.push_back(std::move(section.ops[i]));
    const auto [begin, end] = after.equal_range(i);
    for (auto sum = begin; sum != end; ++sum) {
      ops.push_back(std::move(sum->second));
    }
  }
  section.ops = std::move(ops);
}

auto SumOverReplicas(Plan& plan, Section& section) -> void {
  Emitter emitter(&plan, &section.ops, PassKind::Shard);
  const size_t first_sum = section.ops.size();
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
  if (FactsOf(plan.device).overlaps_streams && section.ops.size() > first_sum) {
    MoveAfterWriters(plan, section, first_sum);
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
  // Alone it has the bytes and the shape of one gradient.
  if (whole_ones.size() == 1) {
    plan.values[all].role = plan.values[sum].role = ValueRole::Of(whole_ones.front());
  }
  for (const SubVectorId id : whole_ones) {
    const Value own = plan.values[plan.sub_vectors[id].gradient];
    const ValueId view = emitter.View(own.buffer, own.offset, {own.dtype, own.shape}, own.name + ".whole");
    plan.values[view].placement = whole;
    plan.values[view].role = own.role;
    plan.sub_vectors[id].gradient = view;
  }
}

}  // namespace shardc
