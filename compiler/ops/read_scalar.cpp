// read_scalar. C1: value is f64[1]. C2: the scalar is a metric; flags are agreed on by all ranks.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::ReadScalar::Facts{.scalars = {{{"to", ScalarEffect::SetByRank}}}};

auto Shape(const op::ReadScalar&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::ReadScalar& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.value, {DType::F64, {1}}, "value", "read_scalar-c1"_rule);
  const Scalar& scalar = plan.scalars[op.to];
  check.Expect(scalar.kind == ScalarKind::Metric, "read_scalar-c2"_rule, "{} is a {} scalar, expected metric",
               scalar.name, ToText(scalar.kind));
}

}  // namespace shardc
