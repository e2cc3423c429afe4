// all_reduce. C1: y is of the type and the bytes of x. C2: the element type can be summed: f32, f64 or i64.
// C3: its FLOPs, and what a group sends, can be counted. C4: where peers read x, it lies at one offset on all ranks of
// a group: each reads its peers' at its own.
#include <algorithm>

#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::AllReduce::Facts{.collective = CollectiveKind::AllReduce,
                                             .peer_reads = PeerReads::IfGradients,
                                             .stream = StreamClass::Axes,
                                             .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}}};

auto Shape(const op::AllReduce& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

static auto IsBySlices(const op::AllReduce& op, const Plan& plan) -> bool {
  return IsReadByPeers(plan.buffers[plan.values[op.x].buffer].arena);
}

auto ScratchBytes(const op::AllReduce& op, const Plan& plan) -> Bytes {
  return AllReduceScratch(ExchangeOf(plan, op.axes), ElementsOf(plan, op.x), plan.values[op.x].dtype,
                          IsBySlices(op, plan));
}

auto Verify(const op::AllReduce& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "all_reduce-c1"_rule);
  ExpectSameBytes(check, plan, op.y, op.x, "all_reduce-c1"_rule);
  const DType dtype = plan.values[op.x].dtype;
  check.Expect(dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64, "all_reduce-c2"_rule, "x is {}",
               ToText(dtype));
  const int64_t ranks = plan.mesh.size(op.axes);
  const bool is_by_slices = IsBySlices(op, plan);
  ExpectCountable(check, {BytesOf(plan, op.x).value, ranks, is_by_slices ? 2 : std::max<int64_t>(2, ranks)},
                  "all_reduce-c3"_rule);
  if (is_by_slices) {
    ExpectOneOffset(check, plan, op.x, op.axes, "x", "all_reduce-c4"_rule);
  }
}

/// Where peers read the operand, a reduce-scatter and an all-gather of slices: 2 (R - 1) / R of it a rank. Source:
/// Thakur et al. 2005, sec. 4.4. A small one elsewhere goes to every other rank as it is.
auto OwnCost(const op::AllReduce& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const int64_t elements = ElementsOf(plan, op.x);
  const DType dtype = plan.values[op.x].dtype;
  cost.wires.push_back({op.axes, dtype, BytesOf(plan, op.x),
                        AllReduceTraffic(ExchangeOf(plan, op.axes), elements, dtype, IsBySlices(op, plan))});
  return cost;
}

}  // namespace shardc
