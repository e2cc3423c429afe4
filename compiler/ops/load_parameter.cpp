// load_parameter. C1: shard is the slice of the sub-vector's parameters. C2: the parameter lies in the sub-vector. C3:
// its init rule names a block of a tensor of the seed, and that has the block, in f32, bf16 or f16.
#include "compiler/ops/op_support.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

constinit const OpFacts op::LoadParameter::Facts{
    .sections = {SectionKind::Init}, .lasting = {SectionKind::Init}, .state = StateUse::Load};

auto Shape(const op::LoadParameter&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::LoadParameter& op, const Plan& plan, OpCheck& check) -> void {
  const Parameter& parameter = plan.parameters[op.parameter];
  ExpectShardToFill(check, plan, op, plan.parameters[op.parameter].dtype, "load_parameter-c1"_rule,
                    "load_parameter-c2"_rule);
  const auto block = LoadedBlockOf(parameter);
  const SeedTensor* const tensor = block ? plan.seed.Find(block->tensor) : nullptr;
  bool has_block = tensor != nullptr && tensor->shape.size() == parameter.shape.size();
  for (size_t i = 0; has_block && i < parameter.shape.size(); ++i) {
    has_block = block->indices.empty() ? tensor->shape[i] == parameter.shape[i]
                                       : block->indices[i].begin <= tensor->shape[i] - parameter.shape[i];
  }
  check.Expect(
      has_block && IsTypeOfSeed(tensor->dtype), "load_parameter-c3"_rule, "{} is {}, its rule {}, and the seed has {}",
      parameter.name, ToText(parameter.shape), parameter.init,
      tensor == nullptr ? "no such tensor" : fmt::format("{}{}", ToText(tensor->dtype), ToText(tensor->shape)));
}

auto OwnCost(const op::LoadParameter& op, const Plan& plan) -> OpCost {
  return CostOfFilling(op, plan, plan.parameters[op.parameter].dtype);
}

}  // namespace shardc
