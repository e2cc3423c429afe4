// initialize. C1: shard is the slice of the sub-vector's parameters. C2: the parameter lies in the sub-vector.
#include <algorithm>

#include "compiler/ops/cuda/initial_values.h"
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Initialize::Facts{
    .sections = {SectionKind::Init}, .lasting = {SectionKind::Init}, .state = StateUse::Draw};

auto Shape(const op::Initialize&, const Plan&) -> std::vector<ValueType> { return {}; }

auto ScratchBytes(const op::Initialize& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, ScratchOfDraws(ElementsOf(plan, op.shard)));
}

auto Verify(const op::Initialize& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  ExpectType(check, plan, op.shard,
             {plan.parameters[op.parameter].dtype, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard",
             "initialize-c1"_rule);
  check.Expect(std::any_of(sub_vector.segments.begin(), sub_vector.segments.end(),
                           [&](const Segment& segment) { return segment.parameter == op.parameter; }),
               "initialize-c2"_rule, "{} does not lie in v{}", plan.parameters[op.parameter].name, op.sub_vector.index);
}

auto OwnCost(const op::Initialize& op, const Plan& plan) -> OpCost {
  OpCost cost;
  cost.written = Bytes{plan.parameters[op.parameter].num_elements() * SizeOf(plan.parameters[op.parameter].dtype)} /
                 plan.mesh.size(plan.sub_vectors[op.sub_vector].axes);
  return cost;
}

}  // namespace shardc
