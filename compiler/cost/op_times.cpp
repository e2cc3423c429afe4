#include "compiler/cost/op_times.h"

#include <algorithm>
#include <cmath>

#include "compiler/ops/cuda/attention.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"

namespace shardc {

/// Part of the time of attention's backward by cuDNN that each further call takes more: the chunks that
/// run.attention_workspace makes run one after another. Source: 1 x 8192 and 8 x 2048 positions on one H100, 5 and 11 %
/// for 2 calls, 22 and 31 % for 4.
constexpr double OfFurtherCall = 0.07;
/// Time of the backward that adds in any order, of the deterministic one's in one call. Source: the same shapes, 0.87
/// and 0.94.
constexpr double InAnyOrder = 0.9;

OpTimes::OpTimes(const Plan& plan, const MachineRow& machine) : plan_(plan), machine_(machine) {
  const int64_t ranks = plan.mesh.num_ranks();
  if (plan.mesh.hosts > 1 || ranks <= MostOfHost) {
    return;
  }
  Mesh mesh = plan.mesh;
  const auto are_boxes = [&](int64_t of_host) {
    mesh.hosts = ranks / of_host;
    return ranks % of_host == 0 && mesh.HostsAreBoxes();
  };
  assumed_of_host_ = MostOfHost;
  while (!are_boxes(assumed_of_host_)) {
    --assumed_of_host_;
  }
  with_hosts_ = plan;
  with_hosts_->mesh = mesh;
  with_hosts_->run.comm = mesh.hosts <= MostExchangingGpus ? Comm::Nccl : Comm::NcclRing;
}

auto OpTimes::AttentionRate(const Op& op) const -> double {
  const AttentionFact& fact = FactsOf(op).attention;
  const ValueId q = ValueIn(op.body, fact.queries);
  const int64_t head_dim = *AttributeOf<int64_t>(op.body, fact.head_dim);
  const CudaAttention attention =
      CudaAttentionOf(plan(), q, ValueIn(op.body, fact.keys), ValueIn(op.body, fact.starts), head_dim);
  if (!attention.by_cudnn()) {
    return machine_.peak_f32.value * rates().plain_attention;
  }
  const auto& [small, large] = rates().attention;
  const OpRates::Attention& shares = head_dim <= small.head_dim ? small : large;
  const auto sequence = static_cast<double>(plan().values[q].shape[0]);
  const double backward = shares.backward / (1 + OfFurtherCall * static_cast<double>(attention.backward_calls() - 1)) /
                          (plan().run.deterministic ? 1 : InAnyOrder);
  return machine_.peak_bf16.value * (op.phase == Phase::Backward ? backward : shares.forward) *
         std::min(1.0, static_cast<double>(head_dim) / static_cast<double>(shares.head_dim)) * sequence /
         (sequence + rates().half_rate_sequence);
}

auto OpTimes::ProductRate(const Op& op) const -> double {
  const bool is_bf16 = plan().values[AccessesOf(op.body)[0].value].dtype == DType::BF16;
  return is_bf16 ? machine_.peak_bf16.value * rates().product_bf16 : machine_.peak_f32.value * rates().product_f32;
}

auto OpTimes::OfCollective(const Op& op, const OpCost& cost) const -> OpTime {
  OpTime time{.part = StepPart::Peers, .link = Link::InHost, .device = rates().meetings, .host = rates().meetings};
  const CollectiveKind kind = FactsOf(op).collective;
  const double share = kind == CollectiveKind::AllGather ? rates().gather : rates().reduce;
  for (const WireCost& wire : cost.wires) {
    const auto ranks = static_cast<double>(plan().mesh.size(wire.axes));
    const auto between = static_cast<double>(wire.group.between_hosts.value) / ranks;
    const auto all = static_cast<double>(wire.group.all.value) / ranks;
    time.device += (all - between) / (machine_.link_bandwidth.value * share);
    const Exchange exchange = ExchangeOf(plan(), wire.axes);
    if (exchange.crosses()) {
      const auto members = static_cast<double>(exchange.members);
      const bool sends_terms = kind == CollectiveKind::ReduceScatter && !exchange.sums_by_library;
      time.network += between / (machine_.network_bandwidth.value * rates().network) +
                      rates().host_step * std::ceil(std::log2(members)) +
                      (sends_terms ? rates().message * (members - 1) : 0);
    }
  }
  return time;
}

auto OpTimes::Of(const Op& op) const -> OpTime {
  const OpFacts& facts = FactsOf(op);
  const OpCost cost = VisitBody(op.body, [&](const auto& body) { return Cost(body, plan()); });
  OpTime time = cost.wires.empty() ? OpTime{} : OfCollective(op, cost);
  time.host_waits = std::ranges::any_of(facts.scalars, [](const ScalarFact& fact) {
    return !fact.field.empty() && (fact.effect == ScalarEffect::SetByRank || fact.effect == ScalarEffect::SetByAll);
  });
  const auto bytes = static_cast<double>(cost.read.value + cost.written.value);
  if (time.host_waits) {
    time.host = std::max(time.host, rates().read_by_host);
  } else if (cost.wires.empty() && bytes > 0 && facts.meaning != Meaning::Renamed) {
    time.host = rates().launch;
    time.device = bytes / (machine_.memory_bandwidth.value * rates().memory);
    if (cost.matmul_flops > Flops{}) {
      const bool attends = facts.attention.is_set();
      time.part = attends ? StepPart::Attention : StepPart::Product;
      const double rate = attends ? AttentionRate(op) : ProductRate(op);
      time.device = std::max(time.device, static_cast<double>(cost.matmul_flops.value) / rate);
    }
    time.device += rates().kernel;
  }
  return time;
}

}  // namespace shardc
