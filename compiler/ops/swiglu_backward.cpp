// swiglu_backward. C1: all five operands and results are of one type, f32 or bf16. C2: dgate is the bytes of gate, dup
// those of up.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::SwigluBackward::Facts{
    .sections = {SectionKind::Step},
    .threads = {WorkCut::Elements, "dy"},
    .dims = {.fields = {{{"dy", "*"}, {"gate", "*"}, {"up", "*"}, {"dgate", "*"}, {"dup", "*"}}}}};

auto Shape(const op::SwigluBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.gate), TypeOf(plan, op.up)};
}

auto Verify(const op::SwigluBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = TypeOf(plan, op.dy);
  ExpectComputed(check, type.dtype, "dy", "swiglu_backward-c1"_rule);
  for (const auto& [field, value] :
       {std::pair{"gate", op.gate}, std::pair{"up", op.up}, std::pair{"dgate", op.dgate}, std::pair{"dup", op.dup}}) {
    ExpectType(check, plan, value, type, field, "swiglu_backward-c1"_rule);
  }
  ExpectSameBytes(check, plan, op.dgate, op.gate, "swiglu_backward-c2"_rule);
  ExpectSameBytes(check, plan, op.dup, op.up, "swiglu_backward-c2"_rule);
}

}  // namespace shardc
