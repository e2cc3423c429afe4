// control. C1: bad is i64[1]. C2: the scalars it writes are flags.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Control::Facts{
    .sections = {SectionKind::Step},
    .collective = CollectiveKind::Agree,
    .scalars = {{{"stop", ScalarEffect::SetByAll, ScalarRole::Stop},
                 {"nonfinite", ScalarEffect::SetByAll, ScalarRole::NonFinite},
                 {"bad_parameter", ScalarEffect::SetByAll, ScalarRole::BadParameter}}}};

auto Shape(const op::Control&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Control& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.bad, {DType::I64, {1}}, "bad", "control-c1"_rule);
  for (const ScalarId id : {op.stop, op.nonfinite, op.bad_parameter}) {
    const Scalar& scalar = plan.scalars[id];
    check.Expect(scalar.kind == ScalarKind::Flag, "control-c2"_rule, "{} is a {} scalar, expected flag", scalar.name,
                 ToText(scalar.kind));
  }
}

/// Two words, which each rank sends to every other.
auto Cost(const op::Control& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const Bytes payload{2 * SizeOf(DType::I64)};
  cost.wires.push_back({op.axes, DType::I64, payload, AgreementTraffic(ExchangeOf(plan, op.axes), payload)});
  return cost;
}

}  // namespace shardc
