// scale. C1: x and y are of one type, f32 or bf16. C2: y is the bytes of x.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Scale::Facts{.threads = {WorkCut::Elements, "x"},
                                         .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}}};

auto Shape(const op::Scale& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::Scale& op, const Plan& plan, OpCheck& check) -> void {
  ExpectComputed(check, plan.values[op.x].dtype, "x", "scale-c1"_rule);
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "scale-c1"_rule);
  ExpectSameBytes(check, plan, op.y, op.x, "scale-c2"_rule);
}

/// Scales the gradient by the same factor.
auto Vjp(const op::Scale& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  context.Emit(op::Scale{.x = dy, .y = context.GradientOver(op.x, dy), .factor = op.factor});
}

}  // namespace shardc
