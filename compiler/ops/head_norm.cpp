// head_norm. C1: x is [S, B, A*D] and weight [D]. C2: y is of x's shape; x, weight and y are of one type, f32 or bf16.
// C3: rstd is f32 [S, B, A]. C4: eps is not negative.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::HeadNorm::Facts{
    .threads = {WorkCut::Rows, "x"},
    .dims = {.fields = {{{"x", "SBA"}, {"weight", "D"}, {"y", "SBA"}, {"rstd", "SBA"}}}, .whole = "D"},
    .model = {{{.key = ModelKey::NormEps, .field = "eps"}, {.key = ModelKey::HeadDim, .field = "weight", .dim = 0}}}};

auto Shape(const op::HeadNorm& op, const Plan& plan) -> std::vector<ValueType> {
  Dims heads = ShapeOf(plan, op.x);
  heads.back() /= ShapeOf(plan, op.weight)[0];
  return {TypeOf(plan, op.x), {DType::F32, heads}};
}

auto Verify(const op::HeadNorm& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  const Dims& weight = ShapeOf(plan, op.weight);
  if (!check.Expect(x.shape.size() == 3 && weight.size() == 1 && weight[0] > 0 && x.shape[2] % weight[0] == 0,
                    "head_norm-c1"_rule, "x is {}, weight {}", ToText(x.shape), ToText(weight))) {
    return;
  }
  ExpectComputed(check, x.dtype, "x", "head_norm-c2"_rule);
  ExpectType(check, plan, op.weight, {x.dtype, weight}, "weight", "head_norm-c2"_rule);
  ExpectNormResults(check, plan, op, "head_norm-c2"_rule, "head_norm-c3"_rule, "head_norm-c4"_rule);
}

auto Vjp(const op::HeadNorm& op, VjpContext& context) -> void { EmitNormBackward<op::HeadNormBackward>(op, context); }

}  // namespace shardc
