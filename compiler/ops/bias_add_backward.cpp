// bias_add_backward. C1: dy has dims and is f32 or bf16; dbias is f32 [H] with H the last dim of dy. C2: dbias_onto is
// the same bytes as dbias.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::BiasAddBackward::Facts{.sections = {SectionKind::Step},
                                                   .launch = {{{.what = "columns", .field = "dbias", .of_block = 32}}},
                                                   .threads = {WorkCut::Columns, "dy"},
                                                   .dims = {.fields = {{{"dy", "*H"}, {"dbias", "H"}}}, .summed = "*"}};

auto Shape(const op::BiasAddBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F32, {ShapeOf(plan, op.dy).back()}}};
}

auto ScratchBytes(const op::BiasAddBackward& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, RangesOfRows * SizeOf(DType::F32) * ShapeOf(plan, op.dy).back());
}

auto Verify(const op::BiasAddBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType dy = TypeOf(plan, op.dy);
  if (!check.Expect(!dy.shape.empty(), "bias_add_backward-c1"_rule, "dy has no dims")) {
    return;
  }
  ExpectComputed(check, dy.dtype, "dy", "bias_add_backward-c1"_rule);
  ExpectType(check, plan, op.dbias, {DType::F32, {dy.shape.back()}}, "dbias", "bias_add_backward-c1"_rule);
  ExpectSameBytes(check, plan, op.dbias, op.dbias_onto, "bias_add_backward-c2"_rule);
}

}  // namespace shardc
