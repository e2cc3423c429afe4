// all_reduce. C1: y is of the type and the bytes of x. C2: the element type can be summed: f32, f64 or i64.
// C3: its FLOPs can be counted.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::AllReduce& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::AllReduce& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "all_reduce-c1"_rule);
  ExpectSameBytes(check, plan, op.y, op.x, "all_reduce-c1"_rule);
  const DType dtype = plan.values[op.x].dtype;
  check.Expect(dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64, "all_reduce-c2"_rule, "x is {}",
               ToText(dtype));
  ExpectCountable(check, {ElementsOf(plan, op.x), plan.mesh.size(op.axes)}, "all_reduce-c3"_rule);
}

/// A reduce-scatter and an all-gather. Source: Thakur et al. 2005, sec. 4.4.
auto Cost(const op::AllReduce& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const int64_t ranks = plan.mesh.size(op.axes);
  const Bytes payload = BytesOf(plan, op.x);
  cost.other_flops = Flops{ElementsOf(plan, op.x) * (ranks - 1)};
  cost.wires.push_back({op.axes, plan.values[op.x].dtype, payload, RingBytes(payload, 2, ranks)});
  return cost;
}

}  // namespace shardc
