// layer_norm. C1: weight and bias are [H], with H the last dim of x, and of one element type. C2: weight and bias are
// f32 or bf16; y is of their element type, and x is of it or f32. C3: mean and rstd are f32 of x's leading dims. C4:
// eps is not negative.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LayerNorm::Facts{
    .threads = {WorkCut::Rows, "x"},
    .dims = {.fields = {{{"x", "*H"}, {"weight", "H"}, {"bias", "H"}, {"y", "*H"}, {"mean", "*"}, {"rstd", "*"}}},
             .whole = "H"},
    .model = {{{.key = ModelKey::NormEps, .field = "eps"}, {.key = ModelKey::Hidden, .field = "x", .dim = -1}}}};

auto Shape(const op::LayerNorm& op, const Plan& plan) -> std::vector<ValueType> {
  const ValueType statistic{DType::F32, LeadingDims(plan, op.x)};
  return {{plan.values[op.weight].dtype, ShapeOf(plan, op.x)}, statistic, statistic};
}

auto Verify(const op::LayerNorm& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "layer_norm-c1"_rule, "x has no dims")) {
    return;
  }
  const DType compute = plan.values[op.weight].dtype;
  ExpectType(check, plan, op.weight, {compute, {x.shape.back()}}, "weight", "layer_norm-c1"_rule);
  ExpectType(check, plan, op.bias, {compute, {x.shape.back()}}, "bias", "layer_norm-c1"_rule);
  ExpectNormTypes(check, x.dtype, compute, "layer_norm-c2"_rule);
  ExpectType(check, plan, op.mean, Shape(op, plan)[1], "mean", "layer_norm-c3"_rule);
  ExpectNormResults(check, plan, op, "layer_norm-c2"_rule, "layer_norm-c3"_rule, "layer_norm-c4"_rule);
}

auto Vjp(const op::LayerNorm& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  const auto dx = context.GradientTarget(op.x);
  const auto dweight = context.GradientTarget(op.weight);
  const auto dbias = context.GradientTarget(op.bias);
  context.Emit(op::LayerNormBackward{.dy = dy,
                                     .x = op.x,
                                     .weight = op.weight,
                                     .mean = op.mean,
                                     .rstd = op.rstd,
                                     .dx = dx.value,
                                     .dx_onto = dx.onto,
                                     .dweight = dweight.value,
                                     .dweight_onto = dweight.onto,
                                     .dbias = dbias.value,
                                     .dbias_onto = dbias.onto});
}

}  // namespace shardc
