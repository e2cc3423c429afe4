// cross_entropy_backward. C1: logits are f32 or bf16; targets are i32 and lse is f32, of their leading dims. C2: count
// is f64[1]. C3: dlogits is of the type and the bytes of logits.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::CrossEntropyBackward::Facts{
    .sections = {SectionKind::Step},
    .threads = {WorkCut::Rows, "logits"},
    .vocabulary = {.matrix = "logits", .ids = "targets"},
    .dims = {.fields = {{{"logits", "*V"}, {"targets", "*"}, {"lse", "*"}, {"count", "1"}, {"dlogits", "*V"}}}}};

auto Shape(const op::CrossEntropyBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.logits)};
}

auto Verify(const op::CrossEntropyBackward& op, const Plan& plan, OpCheck& check) -> void {
  Dims rows = ShapeOf(plan, op.logits);
  if (!check.Expect(!rows.empty(), "cross_entropy_backward-c1"_rule, "logits have no dims")) {
    return;
  }
  rows.pop_back();
  ExpectComputed(check, plan.values[op.logits].dtype, "logits", "cross_entropy_backward-c1"_rule);
  ExpectType(check, plan, op.targets, {DType::I32, rows}, "targets", "cross_entropy_backward-c1"_rule);
  ExpectType(check, plan, op.lse, {DType::F32, rows}, "lse", "cross_entropy_backward-c1"_rule);
  ExpectType(check, plan, op.count, {DType::F64, {1}}, "count", "cross_entropy_backward-c2"_rule);
  ExpectType(check, plan, op.dlogits, TypeOf(plan, op.logits), "dlogits", "cross_entropy_backward-c3"_rule);
  ExpectSameBytes(check, plan, op.dlogits, op.logits, "cross_entropy_backward-c3"_rule);
}

}  // namespace shardc
