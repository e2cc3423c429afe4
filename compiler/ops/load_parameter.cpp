// load_parameter. C1: shard is the slice of the sub-vector's parameters. C2: the parameter lies in the sub-vector. C3:
// its init rule names a tensor of the seed, whole, and that has the parameter's shape, in f32, bf16 or
// f16.
#include <algorithm>

#include "compiler/ops/op_support.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

constinit const OpFacts op::LoadParameter::Facts{
    .sections = {SectionKind::Init}, .lasting = {SectionKind::Init}, .state = StateUse::Load};

auto Shape(const op::LoadParameter&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::LoadParameter& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const Parameter& parameter = plan.parameters[op.parameter];
  ExpectType(check, plan, op.shard, {parameter.dtype, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard",
             "load_parameter-c1"_rule);
  check.Expect(std::any_of(sub_vector.segments.begin(), sub_vector.segments.end(),
                           [&](const Segment& segment) { return segment.parameter == op.parameter; }),
               "load_parameter-c2"_rule, "{} does not lie in v{}", parameter.name, op.sub_vector.index);
  const auto name = LoadedTensorOf(parameter);
  const SeedTensor* const tensor = name ? plan.seed.Find(*name) : nullptr;
  check.Expect(
      tensor != nullptr && tensor->shape == parameter.shape && IsTypeOfSeed(tensor->dtype), "load_parameter-c3"_rule,
      "{} is {}, its rule {}, and the seed has {}", parameter.name, ToText(parameter.shape), parameter.init,
      tensor == nullptr ? "no such tensor" : fmt::format("{}{}", ToText(tensor->dtype), ToText(tensor->shape)));
}

auto Cost(const op::LoadParameter& op, const Plan& plan) -> OpCost {
  OpCost cost;
  cost.written = Bytes{plan.parameters[op.parameter].num_elements() * SizeOf(plan.parameters[op.parameter].dtype)} /
                 plan.mesh.size(plan.sub_vectors[op.sub_vector].axes);
  return cost;
}

}  // namespace shardc
