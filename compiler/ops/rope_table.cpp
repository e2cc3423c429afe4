// rope_table. C1: table is f32 [S, 2, D/2]. C2: theta is over 0.
#include "compiler/ops/op_support.h"

namespace shardc {

/// The shape is the caller's choice (sequence and head width); the op only fills it.
auto Shape(const op::RopeTable& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.table)}; }

auto Verify(const op::RopeTable& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = TypeOf(plan, op.table);
  check.Expect(type.dtype == DType::F32 && type.shape.size() == 3 && type.shape[1] == 2, "rope_table-c1",
               "table is {}{}, expected f32[S, 2, D/2]", ToText(type.dtype), ToText(type.shape));
  check.Expect(op.theta > 0, "rope_table-c2", "theta is {}", op.theta);
}

auto Cost(const op::RopeTable& op, const Plan& plan) -> OpCost { return ElementwiseCost(op, plan, op.table, 4); }

}  // namespace shardc
