// rms_norm. C1: weight is [H] with H the last dim of x. C2: y is of weight's element type, f32 or bf16; x is too,
// or f32. C3: rstd is f32 of x's leading dims. C4: eps is not negative.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::RmsNorm::Facts{
    .threads = {WorkCut::Rows, "x"},
    .dims = {.fields = {{{"x", "*H"}, {"weight", "H"}, {"y", "*H"}, {"rstd", "*"}}}, .whole = "H"},
    .model = {{{.key = ModelKey::NormEps, .field = "eps"}, {.key = ModelKey::Hidden, .field = "x", .dim = -1}}}};

auto Shape(const op::RmsNorm& op, const Plan& plan) -> std::vector<ValueType> {
  return {{plan.values[op.weight].dtype, ShapeOf(plan, op.x)}, {DType::F32, LeadingDims(plan, op.x)}};
}

auto Verify(const op::RmsNorm& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "rms_norm-c1"_rule, "x has no dims")) {
    return;
  }
  const DType compute = plan.values[op.weight].dtype;
  ExpectType(check, plan, op.weight, {compute, {x.shape.back()}}, "weight", "rms_norm-c1"_rule);
  ExpectNormTypes(check, x.dtype, compute, "rms_norm-c2"_rule);
  ExpectNormResults(check, plan, op, "rms_norm-c2"_rule, "rms_norm-c3"_rule, "rms_norm-c4"_rule);
}

auto Vjp(const op::RmsNorm& op, VjpContext& context) -> void { EmitNormBackward<op::RmsNormBackward>(op, context); }

}  // namespace shardc
