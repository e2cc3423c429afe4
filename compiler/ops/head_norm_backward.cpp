// head_norm_backward. C1: x is [S, B, A*D] and weight [D]. C2: dy, x, weight and dx are of one type, f32 or bf16, and
// dy and dx of x's shape. C3: rstd is f32 [S, B, A]. C4: dweight is f32 of weight's shape. C5: dx_onto and dweight_onto
// are the same bytes as dx and dweight.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::HeadNormBackward::Facts{
    .sections = {SectionKind::Step},
    .launch = {{{.what = "columns", .field = "dweight", .of_block = 32}}},
    .threads = {WorkCut::RowsThenColumns, "x"},
    .dims = {
        .fields = {{{"dy", "SBA"}, {"x", "SBA"}, {"weight", "D"}, {"rstd", "SBA"}, {"dx", "SBA"}, {"dweight", "D"}}},
        .summed = "SBA",
        .whole = "D"}};

auto Shape(const op::HeadNormBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.x), {DType::F32, ShapeOf(plan, op.weight)}};
}

auto ScratchBytes(const op::HeadNormBackward& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, RangesOfRows * SizeOf(DType::F32) * ElementsOf(plan, op.weight));
}

auto Verify(const op::HeadNormBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  const Dims& weight = ShapeOf(plan, op.weight);
  if (!check.Expect(x.shape.size() == 3 && weight.size() == 1 && weight[0] > 0 && x.shape[2] % weight[0] == 0,
                    "head_norm_backward-c1"_rule, "x is {}, weight {}", ToText(x.shape), ToText(weight))) {
    return;
  }
  ExpectComputed(check, x.dtype, "x", "head_norm_backward-c2"_rule);
  ExpectType(check, plan, op.dy, x, "dy", "head_norm_backward-c2"_rule);
  ExpectType(check, plan, op.weight, {x.dtype, weight}, "weight", "head_norm_backward-c2"_rule);
  ExpectType(check, plan, op.dx, x, "dx", "head_norm_backward-c2"_rule);
  Dims heads = x.shape;
  heads.back() /= weight[0];
  ExpectType(check, plan, op.rstd, {DType::F32, heads}, "rstd", "head_norm_backward-c3"_rule);
  ExpectType(check, plan, op.dweight, {DType::F32, weight}, "dweight", "head_norm_backward-c4"_rule);
  ExpectSameBytes(check, plan, op.dx, op.dx_onto, "head_norm_backward-c5"_rule);
  ExpectSameBytes(check, plan, op.dweight, op.dweight_onto, "head_norm_backward-c5"_rule);
}

}  // namespace shardc
