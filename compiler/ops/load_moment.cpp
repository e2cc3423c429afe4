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
  const Parameter& parameter = plan.parameters[op.parameter];
  ExpectShardToFill(check, plan, op, DType::F32, "load_moment-c1"_rule, "load_moment-c2"_rule);
  check.Expect(op.role != StateRole::Parameter && HasRole(plan.sub_vectors[op.sub_vector], op.role),
               "load_moment-c1"_rule, "v{} keeps no {}", op.sub_vector.index, ToText(op.role));
  const auto block = LoadedBlockOf(parameter);
  check.Expect(block && block->indices.empty() && TakesMoments(plan, parameter), "load_moment-c3"_rule,
               "{} begins as {}; the first update of its moments is {}, and the seed has {}", parameter.name,
               parameter.init, parameter.first_update, plan.seed.updates);
}

auto OwnCost(const op::LoadMoment& op, const Plan& plan) -> OpCost { return CostOfFilling(op, plan, DType::F32); }

}  // namespace shardc
