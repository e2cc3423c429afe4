// rms_norm_backward. C1: dy and dx are of x's type. C2: weight and dweight are [H]. C3: rstd is f32 of x's leading dims.
// C4: dx_onto and dweight_onto are the same bytes as dx and dweight.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::RmsNormBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.x), TypeOf(plan, op.weight)};
}

auto Verify(const op::RmsNormBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "rms_norm_backward-c1", "x has no dims")) {
    return;
  }
  ExpectType(check, plan, op.dy, x, "dy", "rms_norm_backward-c1");
  ExpectType(check, plan, op.dx, x, "dx", "rms_norm_backward-c1");
  ExpectType(check, plan, op.weight, {x.dtype, {x.shape.back()}}, "weight", "rms_norm_backward-c2");
  ExpectType(check, plan, op.dweight, {DType::F32, {x.shape.back()}}, "dweight", "rms_norm_backward-c2");
  Dims rows = x.shape;
  rows.pop_back();
  ExpectType(check, plan, op.rstd, {DType::F32, rows}, "rstd", "rms_norm_backward-c3");
  if (op.dx_onto.valid()) {
    ExpectSameBytes(check, plan, op.dx, op.dx_onto, "rms_norm_backward-c4");
  }
  if (op.dweight_onto.valid()) {
    ExpectSameBytes(check, plan, op.dweight, op.dweight_onto, "rms_norm_backward-c4");
  }
}

auto Cost(const op::RmsNormBackward& op, const Plan& plan) -> OpCost { return ElementwiseCost(op, plan, op.x, 9); }

}  // namespace shardc
