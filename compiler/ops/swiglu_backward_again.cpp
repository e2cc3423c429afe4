// swiglu_backward_again. C1: all six operands and results are of one type, f32 or bf16. C2: dgate is the bytes of gate,
// dup those of up, y those of dy.
#include "compiler/ops/op_support.h"
#include "compiler/ops/parts.h"

namespace shardc {

constinit const OpFacts op::SwigluBackwardAgain::Facts{.sections = {SectionKind::Step},
                                                       .threads = {WorkCut::Elements, "dy"}};

auto Shape(const op::SwigluBackwardAgain& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.gate), TypeOf(plan, op.up), TypeOf(plan, op.dy)};
}

auto Verify(const op::SwigluBackwardAgain& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = TypeOf(plan, op.dy);
  ExpectComputed(check, type.dtype, "dy", "swiglu_backward_again-c1"_rule);
  for (const auto& [field, value] : {std::pair{"gate", op.gate}, std::pair{"up", op.up}, std::pair{"dgate", op.dgate},
                                     std::pair{"dup", op.dup}, std::pair{"y", op.y}}) {
    ExpectType(check, plan, value, type, field, "swiglu_backward_again-c1"_rule);
  }
  ExpectSameBytes(check, plan, op.dgate, op.gate, "swiglu_backward_again-c2"_rule);
  ExpectSameBytes(check, plan, op.dup, op.up, "swiglu_backward_again-c2"_rule);
  ExpectSameBytes(check, plan, op.y, op.dy, "swiglu_backward_again-c2"_rule);
}

/// Emits y before the gradients lie over what it is computed from, and puts it over dy after they have read dy.
auto Parts(const op::SwigluBackwardAgain& op, PartsContext& context) -> void {
  const ValueId y = context.New(op.y, TypeOf(context.plan(), op.y));
  context.Emit(op::Swiglu{.gate = op.gate, .up = op.up, .y = y}, Phase::Recompute);
  context.Emit(op::SwigluBackward{.dy = op.dy, .gate = op.gate, .up = op.up, .dgate = op.dgate, .dup = op.dup});
  context.Emit(op::Copy{.x = y, .y = op.y}, Phase::Recompute);
}

}  // namespace shardc
