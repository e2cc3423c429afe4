// add_rms_norm. C1: x and sum are of one type. C2: branch has the shape of x and weight's element type, f32 or bf16; x
// has that type, or f32. C3: weight is [H] with H the last dim of x, and y is of branch's type. C4: rstd is f32 of x's
// leading dims. C5: eps is not negative.
#include "compiler/ops/op_support.h"
#include "compiler/ops/parts.h"

namespace shardc {

constinit const OpFacts op::AddRmsNorm::Facts{.threads = {WorkCut::Rows, "x"}};

auto Shape(const op::AddRmsNorm& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.x), TypeOf(plan, op.branch), {DType::F32, LeadingDims(plan, op.x)}};
}

auto Verify(const op::AddRmsNorm& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "add_rms_norm-c2"_rule, "x has no dims")) {
    return;
  }
  const ValueType branch{plan.values[op.weight].dtype, x.shape};
  ExpectType(check, plan, op.sum, x, "sum", "add_rms_norm-c1"_rule);
  ExpectNormTypes(check, x.dtype, branch.dtype, "add_rms_norm-c2"_rule);
  ExpectType(check, plan, op.branch, branch, "branch", "add_rms_norm-c2"_rule);
  ExpectType(check, plan, op.weight, {branch.dtype, {x.shape.back()}}, "weight", "add_rms_norm-c3"_rule);
  ExpectType(check, plan, op.y, branch, "y", "add_rms_norm-c3"_rule);
  ExpectType(check, plan, op.rstd, {DType::F32, LeadingDims(plan, op.x)}, "rstd", "add_rms_norm-c4"_rule);
  check.Expect(op.eps >= 0, "add_rms_norm-c5"_rule, "eps is {}", op.eps);
}

auto Parts(const op::AddRmsNorm& op, PartsContext& context) -> void {
  context.Emit(op::ResidualAdd{.x = op.x, .branch = op.branch, .y = op.sum});
  context.Emit(op::RmsNorm{.x = op.sum, .weight = op.weight, .y = op.y, .rstd = op.rstd, .eps = op.eps});
}

}  // namespace shardc
