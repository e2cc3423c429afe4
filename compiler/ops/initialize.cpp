// initialize. C1: shard is the slice of the sub-vector's parameters. C2: the parameter lies in the sub-vector.
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
  ExpectShardToFill(check, plan, op, plan.parameters[op.parameter].dtype, "initialize-c1"_rule, "initialize-c2"_rule);
}

auto OwnCost(const op::Initialize& op, const Plan& plan) -> OpCost {
  return CostOfFilling(op, plan, plan.parameters[op.parameter].dtype);
}

}  // namespace shardc
