// layer_norm_backward. C1: dx is of x's type, which is weight's element type or f32; dy is of its shape and weight's
// element type, f32 or bf16. C2: weight is [H], and dweight and dbias are f32 of its shape. C3: mean and rstd are f32
// of x's leading dims. C4: dx_onto, dweight_onto and dbias_onto are the same bytes as dx, dweight and dbias.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LayerNormBackward::Facts{
    .sections = {SectionKind::Step},
    .launch = {{{.what = "columns", .field = "dweight", .of_block = 32}}},
    .threads = {WorkCut::RowsThenColumns, "x"},
    .dims = {.fields = {{{"dy", "*H"},
                         {"x", "*H"},
                         {"weight", "H"},
                         {"mean", "*"},
                         {"rstd", "*"},
                         {"dx", "*H"},
                         {"dweight", "H"},
                         {"dbias", "H"}}},
             .summed = "*",
             .whole = "H"}};

auto Shape(const op::LayerNormBackward& op, const Plan& plan) -> std::vector<ValueType> {
  const ValueType gradient{DType::F32, ShapeOf(plan, op.weight)};
  return {TypeOf(plan, op.x), gradient, gradient};
}

auto ScratchBytes(const op::LayerNormBackward& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, 2 * RangesOfRows * SizeOf(DType::F32) * ElementsOf(plan, op.weight));
}

auto Verify(const op::LayerNormBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "layer_norm_backward-c1"_rule, "x has no dims")) {
    return;
  }
  const DType compute = plan.values[op.weight].dtype;
  ExpectNormTypes(check, x.dtype, compute, "layer_norm_backward-c1"_rule);
  ExpectType(check, plan, op.dy, {compute, x.shape}, "dy", "layer_norm_backward-c1"_rule);
  ExpectType(check, plan, op.dx, x, "dx", "layer_norm_backward-c1"_rule);
  const Dims columns{x.shape.back()};
  ExpectType(check, plan, op.weight, {compute, columns}, "weight", "layer_norm_backward-c2"_rule);
  ExpectType(check, plan, op.dweight, {DType::F32, columns}, "dweight", "layer_norm_backward-c2"_rule);
  ExpectType(check, plan, op.dbias, {DType::F32, columns}, "dbias", "layer_norm_backward-c2"_rule);
  const ValueType statistic{DType::F32, LeadingDims(plan, op.x)};
  ExpectType(check, plan, op.mean, statistic, "mean", "layer_norm_backward-c3"_rule);
  ExpectType(check, plan, op.rstd, statistic, "rstd", "layer_norm_backward-c3"_rule);
  ExpectSameBytes(check, plan, op.dx, op.dx_onto, "layer_norm_backward-c4"_rule);
  ExpectSameBytes(check, plan, op.dweight, op.dweight_onto, "layer_norm_backward-c4"_rule);
  ExpectSameBytes(check, plan, op.dbias, op.dbias_onto, "layer_norm_backward-c4"_rule);
}

}  // namespace shardc
