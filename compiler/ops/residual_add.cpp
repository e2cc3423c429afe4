// residual_add. C1: x and y are f32, of one shape. C2: branch is bf16, of that shape.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::ResidualAdd& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::ResidualAdd& op, const Plan& plan, OpCheck& check) -> void {
  const Dims& shape = ShapeOf(plan, op.x);
  ExpectType(check, plan, op.x, {DType::F32, shape}, "x", "residual_add-c1");
  ExpectType(check, plan, op.y, {DType::F32, shape}, "y", "residual_add-c1");
  ExpectType(check, plan, op.branch, {DType::BF16, shape}, "branch", "residual_add-c2");
}

auto Cost(const op::ResidualAdd& op, const Plan& plan) -> OpCost { return ElementwiseCost(op, plan, op.x, 1); }

/// x shares the sum's gradient; the branch gets it rounded to its type.
auto Vjp(const op::ResidualAdd& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  context.PassGradient(op.x, dy);
  if (context.NeedsGradient(op.branch)) {
    const auto target = context.GradientTarget(op.branch);
    CHECK(!target.onto.valid(), "the branch %{} has another use that wants its gradient", op.branch.index);
    context.Emit(op::Cast{.x = dy, .y = target.value});
  }
}

}  // namespace shardc
