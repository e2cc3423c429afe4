// control. C1: bad is i64[1]. C2: the scalars it writes are flags. C3: loss, spike and left_out are set together or not
// at all.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Control::Facts{
    .sections = {SectionKind::Step},
    .collective = CollectiveKind::Agree,
    .scalars = {{{"stop", ScalarEffect::SetByAll, ScalarRole::Stop},
                 {"nonfinite", ScalarEffect::SetByAll, ScalarRole::NonFinite},
                 {"bad_parameter", ScalarEffect::SetByAll, ScalarRole::BadParameter},
                 {"loss", ScalarEffect::Read, ScalarRole::Loss, true},
                 {"spike", ScalarEffect::SetByAll, ScalarRole::Spike, true},
                 {"left_out", ScalarEffect::SetByAll, ScalarRole::LeftOut, true}}}};

auto Shape(const op::Control&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Control& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.bad, {DType::I64, {1}}, "bad", "control-c1"_rule);
  const bool judges = op.spike.valid();
  check.Expect(op.loss.valid() == judges && op.left_out.valid() == judges, "control-c3"_rule,
               "of loss, spike and left_out some are set, and some are not");
  for (const ScalarId id : {op.stop, op.nonfinite, op.bad_parameter, op.spike, op.left_out}) {
    if (!id.valid()) {
      continue;
    }
    const Scalar& scalar = plan.scalars[id];
    check.Expect(scalar.kind == ScalarKind::Flag, "control-c2"_rule, "{} is a {} scalar, expected flag", scalar.name,
                 ToText(scalar.kind));
  }
}

/// Two words, which each rank sends to every other.
auto OwnCost(const op::Control& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const Bytes payload{2 * SizeOf(DType::I64)};
  cost.wires.push_back({op.axes, DType::I64, payload, AgreementTraffic(ExchangeOf(plan, op.axes), payload)});
  return cost;
}

}  // namespace shardc
