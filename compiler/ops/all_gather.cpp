// all_gather. C1: elements(full) = elements(shard) * ranks of the group. C2: full and shard are of one type. C3: shard
// lies in a shared arena, where the peers read it. C4: into the gathered arena, which the ranks of one host share, all
// ranks of that host gather, at one offset: as they meet when the op begins, no one reads any more what lay there
// before. C5: shard lies at one offset on all ranks of a group: each reads its peers' at its own. C6: what a group
// sends can be counted. C7: scratch lies in the shared-transient arena, at one offset on all ranks: peers read what
// came from other hosts there.
#include "compiler/ops/op_support.h"

namespace shardc {

/// Parts of a vector, one after another, or parts that become a dim of their own.
static auto DimsOfGather(const OpBody& body, const Plan& plan) -> const DimRule& {
  static constexpr DimRule longer{.fields = {{{"shard", "*"}, {"full", "*"}}}};
  static constexpr DimRule stacked{.fields = {{{"shard", "*"}, {"full", "R*"}}}};
  const auto& op = std::get<op::AllGather>(body);
  return ShapeOf(plan, op.full).size() > ShapeOf(plan, op.shard).size() ? stacked : longer;
}

constinit const OpFacts op::AllGather::Facts{.collective = CollectiveKind::AllGather,
                                             .peer_reads = PeerReads::Operand,
                                             .peers_read_scratch = true,
                                             .stream = StreamClass::Axes,
                                             .dims_of = DimsOfGather};

auto Shape(const op::AllGather& op, const Plan& plan) -> std::vector<ValueType> {
  return {{plan.values[op.shard].dtype, {ElementsOf(plan, op.shard) * plan.mesh.size(op.axes)}}};
}

auto ScratchBytes(const op::AllGather& op, const Plan& plan) -> Bytes {
  return GatherScratch(ExchangeOf(plan, op.axes), ElementsOf(plan, op.shard), plan.values[op.shard].dtype);
}

auto Verify(const op::AllGather& op, const Plan& plan, OpCheck& check) -> void {
  const int64_t ranks = plan.mesh.size(op.axes);
  check.Expect(
      ElementsOf(plan, op.full) % ranks == 0 && ElementsOf(plan, op.full) / ranks == ElementsOf(plan, op.shard),
      "all_gather-c1"_rule, "full has {} elements, expected {} of the shard times {} ranks", ElementsOf(plan, op.full),
      ElementsOf(plan, op.shard), ranks);
  check.Expect(plan.values[op.full].dtype == plan.values[op.shard].dtype, "all_gather-c2"_rule, "{} from {}",
               ToText(plan.values[op.full].dtype), ToText(plan.values[op.shard].dtype));
  const Arena arena = plan.buffers[plan.values[op.shard].buffer].arena;
  check.Expect(arena == Arena::SharedPersistent || arena == Arena::SharedTransient, "all_gather-c3"_rule,
               "shard lies in the {} arena", ToText(arena));
  if (plan.buffers[plan.values[op.full].buffer].arena == Arena::Gathered) {
    const int64_t per_host = plan.mesh.ranks_per_host();
    const int64_t gathering = plan.mesh.LocalSize(op.axes);
    check.Expect(gathering == per_host, "all_gather-c4"_rule,
                 "{} ranks of a host gather over {} into its arena, and the host has {}", gathering, ToText(op.axes),
                 per_host);
    check.Expect(!IsFlat(plan.run.comm), "all_gather-c4"_rule,
                 "the ranks of a host gather into its arena, but comm is {}", ToText(plan.run.comm));
    ExpectOneOffset(check, plan, op.full, AxisSet::All(), "full", "all_gather-c4"_rule);
  }
  ExpectOneOffset(check, plan, op.shard, op.axes, "shard", "all_gather-c5"_rule);
  ExpectCountable(check, {BytesOf(plan, op.full).value, ranks}, "all_gather-c6"_rule);
  if (op.scratch.valid()) {
    check.Expect(plan.buffers[plan.values[op.scratch].buffer].arena == Arena::SharedTransient, "all_gather-c7"_rule,
                 "scratch lies in the {} arena", ToText(plan.buffers[plan.values[op.scratch].buffer].arena));
    ExpectOneOffset(check, plan, op.scratch, op.axes, "scratch", "all_gather-c7"_rule);
  }
}

/// A ring sends every slice but one's own. Source: Thakur et al. 2005, sec. 4.1.
auto OwnCost(const op::AllGather& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const Bytes payload = BytesOf(plan, op.full);
  cost.wires.push_back(
      {op.axes, plan.values[op.full].dtype, payload, GatherTraffic(ExchangeOf(plan, op.axes), payload)});
  return cost;
}

/// Each rank's gradient of the whole holds what its own later ops add to it: their sum, cut.
auto Vjp(const op::AllGather& op, VjpContext& context) -> void {
  const ValueId dfull = context.GradientOf(op.full);
  const auto target = context.GradientTarget(op.shard);
  context.Emit(op::ReduceScatter{.full = dfull, .shard = target.value, .shard_onto = target.onto, .axes = op.axes});
}

}  // namespace shardc
