// rms_norm_backward. C1: dx is of x's type, which is weight's element type or f32; dy is of its shape and weight's
// element type, f32 or bf16. C2: weight is [H], and dweight f32. C3: rstd is f32 of x's leading dims. C4: dx_onto and
// dweight_onto are the same bytes as dx and dweight.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::RmsNormBackward::Facts{
    .sections = {SectionKind::Step},
    .launch = {{{.what = "columns", .field = "dweight", .of_block = 32}}},
    .threads = {WorkCut::RowsThenColumns, "x"},
    .dims = {.fields = {{{"dy", "*H"}, {"x", "*H"}, {"weight", "H"}, {"rstd", "*"}, {"dx", "*H"}, {"dweight", "H"}}},
             .summed = "*",
             .whole = "H"}};

auto Shape(const op::RmsNormBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.x), {DType::F32, ShapeOf(plan, op.weight)}};
}

auto ScratchBytes(const op::RmsNormBackward& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, RangesOfRows * SizeOf(DType::F32) * ElementsOf(plan, op.weight));
}

auto Verify(const op::RmsNormBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "rms_norm_backward-c1"_rule, "x has no dims")) {
    return;
  }
  const DType compute = plan.values[op.weight].dtype;
  ExpectNormTypes(check, x.dtype, compute, "rms_norm_backward-c1"_rule);
  ExpectType(check, plan, op.dy, {compute, x.shape}, "dy", "rms_norm_backward-c1"_rule);
  ExpectType(check, plan, op.dx, x, "dx", "rms_norm_backward-c1"_rule);
  ExpectType(check, plan, op.weight, {compute, {x.shape.back()}}, "weight", "rms_norm_backward-c2"_rule);
  ExpectType(check, plan, op.dweight, {DType::F32, {x.shape.back()}}, "dweight", "rms_norm_backward-c2"_rule);
  ExpectType(check, plan, op.rstd, {DType::F32, LeadingDims(plan, op.x)}, "rstd", "rms_norm_backward-c3"_rule);
  ExpectSameBytes(check, plan, op.dx, op.dx_onto, "rms_norm_backward-c4"_rule);
  ExpectSameBytes(check, plan, op.dweight, op.dweight_onto, "rms_norm_backward-c4"_rule);
}

}  // namespace shardc
