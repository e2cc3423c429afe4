// load_moment. C1: shard is the slice of a vector that the optimizer keeps of the sub-vector. C2: the parameter lies in
// the sub-vector. C3: the run takes the moments of the parameter, and the parameter is loaded whole from a tensor of
// the seed.
#include "compiler/ops/op_support.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

constinit const OpFacts op::LoadMoment::Facts{
    .sections = {SectionKind::Init}, .lasting = {SectionKind::Init}, .state = StateUse::LoadMoment};

auto Shape(const op::LoadMoment&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::LoadMoment& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const Parameter& parameter = plan.parameters[op.parameter];
  ExpectType(check, plan, op.shard, {DType::F32, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard",
             "load_moment-c1"_rule);
  check.Expect(op.role != StateRole::Parameter && HasRole(sub_vector, op.role), "load_moment-c1"_rule,
               "v{} keeps no {}", op.sub_vector.index, ToText(op.role));
  check.Expect(std::ranges::count(sub_vector.segments, op.parameter, &Segment::parameter) > 0, "load_moment-c2"_rule,
               "{} does not lie in v{}", parameter.name, op.sub_vector.index);
  const auto block = LoadedBlockOf(parameter);
  check.Expect(block && block->indices.empty() && TakesMoments(plan, parameter), "load_moment-c3"_rule,
               "{} begins as {}; the first update of its moments is {}, and the seed has {}", parameter.name,
               parameter.init, parameter.first_update, plan.seed.updates);
}

auto OwnCost(const op::LoadMoment& op, const Plan& plan) -> OpCost {
  OpCost cost;
  cost.written = Bytes{plan.parameters[op.parameter].num_elements() * SizeOf(DType::F32)} /
                 plan.mesh.size(plan.sub_vectors[op.sub_vector].axes);
  return cost;
}

}  // namespace shardc
