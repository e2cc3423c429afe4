// swiglu. C1: gate, up and y are of one type, f32 or bf16.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Swiglu::Facts{
    .threads = {WorkCut::Elements, "y"},
    .dims = {.fields = {{{"gate", "*"}, {"up", "*"}, {"y", "*"}}}},
    .model = {{{.key = ModelKey::Ffn, .field = "gate", .dim = -1, .is_cut = true}}}};

auto Shape(const op::Swiglu& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.gate)}; }

auto Verify(const op::Swiglu& op, const Plan& plan, OpCheck& check) -> void {
  ExpectComputed(check, plan.values[op.gate].dtype, "gate", "swiglu-c1"_rule);
  ExpectType(check, plan, op.up, TypeOf(plan, op.gate), "up", "swiglu-c1"_rule);
  ExpectType(check, plan, op.y, TypeOf(plan, op.gate), "y", "swiglu-c1"_rule);
}

auto Vjp(const op::Swiglu& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  const ValueId dgate = context.GradientOver(op.gate, op.gate);
  const ValueId dup = context.GradientOver(op.up, op.up);
  context.Emit(op::SwigluBackward{.dy = dy, .gate = op.gate, .up = op.up, .dgate = dgate, .dup = dup});
}

}  // namespace shardc
