// reduce_scatter. C1: elements(full) = elements(shard) * ranks of the group. C2: full and shard are of one type, f32 or
// bf16; or full is bf16 and shard f32. C3: full lies in a shared arena, where the peers read it. C4: shard_onto is the
// same bytes as shard. C5: full lies at one offset on all ranks of a group: each reads its peers' at its own. C6: what
// a group sends can be counted.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::ReduceScatter::Facts{.collective = CollectiveKind::ReduceScatter,
                                                 .peer_reads = PeerReads::Operand,
                                                 .stream = StreamClass::Axes,
                                                 .dims = {.fields = {{{"full", "*"}, {"shard", "*"}}}}};

auto Shape(const op::ReduceScatter& op, const Plan& plan) -> std::vector<ValueType> {
  return {{plan.values[op.full].dtype, {ElementsOf(plan, op.full) / plan.mesh.size(op.axes)}}};
}

auto ScratchBytes(const op::ReduceScatter& op, const Plan& plan) -> Bytes {
  return ReduceScatterScratch(ExchangeOf(plan, op.axes), ElementsOf(plan, op.shard), plan.values[op.full].dtype);
}

auto Verify(const op::ReduceScatter& op, const Plan& plan, OpCheck& check) -> void {
  const int64_t ranks = plan.mesh.size(op.axes);
  check.Expect(
      ElementsOf(plan, op.full) % ranks == 0 && ElementsOf(plan, op.full) / ranks == ElementsOf(plan, op.shard),
      "reduce_scatter-c1"_rule, "full has {} elements, expected {} of the shard times {} ranks",
      ElementsOf(plan, op.full), ElementsOf(plan, op.shard), ranks);
  const DType terms = plan.values[op.full].dtype;
  const DType sum = plan.values[op.shard].dtype;
  check.Expect(
      (terms == DType::F32 && sum == DType::F32) || (terms == DType::BF16 && (sum == DType::BF16 || sum == DType::F32)),
      "reduce_scatter-c2"_rule, "{} to {}, expected f32 or bf16 to the same, or bf16 to f32", ToText(terms),
      ToText(sum));
  const Arena arena = plan.buffers[plan.values[op.full].buffer].arena;
  check.Expect(arena == Arena::SharedPersistent || arena == Arena::SharedTransient, "reduce_scatter-c3"_rule,
               "full lies in the {} arena", ToText(arena));
  ExpectSameBytes(check, plan, op.shard, op.shard_onto, "reduce_scatter-c4"_rule);
  ExpectOneOffset(check, plan, op.full, op.axes, "full", "reduce_scatter-c5"_rule);
  ExpectCountable(check, {BytesOf(plan, op.full).value, 2, plan.mesh.size(op.axes)}, "reduce_scatter-c6"_rule);
}

/// A ring sends every slice but one. Source: Thakur et al. 2005, sec. 4.2.
auto OwnCost(const op::ReduceScatter& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const int64_t elements = ElementsOf(plan, op.full);
  const DType terms = plan.values[op.full].dtype;
  cost.wires.push_back(
      {op.axes, terms, BytesOf(plan, op.full), ReduceScatterTraffic(ExchangeOf(plan, op.axes), elements, terms)});
  return cost;
}

/// Every rank's full vector went into the sum, so the gradient of each is the whole gradient.
auto Vjp(const op::ReduceScatter& op, VjpContext& context) -> void {
  const ValueId dshard = context.GradientOf(op.shard);
  const auto target = context.GradientTarget(op.full);
  if (target.onto.valid()) {
    context.Refuse(fmt::format("the sum's operand {} has another use that wants its gradient", context.Name(op.full)));
  }
  context.Emit(op::AllGather{.shard = dshard, .full = target.value, .axes = op.axes});
}

}  // namespace shardc
