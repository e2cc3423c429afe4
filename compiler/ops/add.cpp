// add. C1: a, b and y are of one type, f32 or bf16. C2: y is the bytes of b.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Add::Facts{.meaning = Meaning::Sum,
                                       .threads = {WorkCut::Elements, "y"},
                                       .dims = {.fields = {{{"a", "*"}, {"b", "*"}, {"y", "*"}}}}};

auto Shape(const op::Add& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.a)}; }

auto Verify(const op::Add& op, const Plan& plan, OpCheck& check) -> void {
  ExpectComputed(check, plan.values[op.a].dtype, "a", "add-c1"_rule);
  ExpectType(check, plan, op.b, TypeOf(plan, op.a), "b", "add-c1"_rule);
  ExpectType(check, plan, op.y, TypeOf(plan, op.a), "y", "add-c1"_rule);
  ExpectSameBytes(check, plan, op.y, op.b, "add-c2"_rule);
}

/// Both branches share the sum's gradient: no op. The branch that adds to it later overwrites it, by when the other
/// branch has read it (the verifier holds us to that).
auto Vjp(const op::Add& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  context.PassGradient(op.a, dy);
  context.PassGradient(op.b, dy);
}

}  // namespace shardc
