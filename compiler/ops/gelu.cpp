// gelu. C1: x and y are of one type, of f32 or bf16.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Gelu::Facts{.threads = {WorkCut::Elements, "y"},
                                        .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}},
                                        .model = {{{.key = ModelKey::Ffn, .field = "x", .dim = -1, .is_cut = true}}}};

auto Shape(const op::Gelu& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::Gelu& op, const Plan& plan, OpCheck& check) -> void {
  ExpectComputed(check, plan.values[op.x].dtype, "x", "gelu-c1"_rule);
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "gelu-c1"_rule);
}

auto Vjp(const op::Gelu& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  const ValueId dx = context.GradientOver(op.x, op.x);
  context.Emit(op::GeluBackward{.dy = dy, .x = op.x, .dx = dx, .tanh_form = op.tanh_form});
}

}  // namespace shardc
