// gelu_backward. C1: dy, x and dx are of one type, of f32 or bf16. C2: dx is the bytes of x.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::GeluBackward::Facts{.sections = {SectionKind::Step},
                                                .threads = {WorkCut::Elements, "dy"},
                                                .dims = {.fields = {{{"dy", "*"}, {"x", "*"}, {"dx", "*"}}}}};

auto Shape(const op::GeluBackward& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::GeluBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = TypeOf(plan, op.dy);
  ExpectComputed(check, type.dtype, "dy", "gelu_backward-c1"_rule);
  ExpectType(check, plan, op.x, type, "x", "gelu_backward-c1"_rule);
  ExpectType(check, plan, op.dx, type, "dx", "gelu_backward-c1"_rule);
  ExpectSameBytes(check, plan, op.dx, op.x, "gelu_backward-c2"_rule);
}

}  // namespace shardc
