#include "compiler/cost/op_times.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/ops/cuda/attention.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"

namespace shardc {

namespace {

// Shares of what the machine's row says. Source: an H100 SXM at its power limit, 26 November 2026 (docs/gpu.md); of
// collectives: expected, not measured.
constexpr double ProductShare = 0.70;
constexpr double ProductShareF32 = 0.75;
constexpr double CopyShare = 0.78;
/// Attention by cuDNN, of sequences so long that their ends do not count, and how long those are that reach half.
struct AttentionShares {
  int64_t head_dim;
  double forward;
  double backward;
};
constexpr std::array Attention{AttentionShares{64, 0.46, 0.23}, AttentionShares{128, 0.67, 0.38}};
constexpr double HalfRateSequence = 540;
/// By plain kernels, of the peak in f32.
constexpr double PlainAttentionShare = 0.045;
constexpr double GatherShare = 0.84;
constexpr double ReduceShare = 0.67;
constexpr double NetworkShare = 0.9;

// Seconds.
constexpr double Kernel = 3e-6;
constexpr double Launch = 8e-6;
constexpr double Meetings = 15e-6;
/// A collective of NCCL over hosts takes as many steps as their number has doublings; a message of terms is one to each
/// other host. Expected, not measured.
constexpr double HostStep = 14e-6;
constexpr double Message = 2e-6;
constexpr double ReadByHost = 12e-6;

}  // namespace

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

/// Returns true for attention and its backward.
static auto IsAttention(const Op& op) -> bool {
  return ValueIn(op.body, "lse").valid() && ValueIn(op.body, "k").valid();
}

auto OpTimes::AttentionRate(const Op& op) const -> double {
  const ValueId q = ValueIn(op.body, "q");
  const Dims& shape = plan().values[q].shape;
  const int64_t heads = plan().values[ValueIn(op.body, "lse")].shape[1];
  const int64_t head_dim = shape[2] / std::max<int64_t>(heads, 1);
  if (!CudaAttentionOf(plan(), q, ValueIn(op.body, "k"), head_dim).by_cudnn()) {
    return machine_.peak_f32.value * PlainAttentionShare;
  }
  const AttentionShares& shares = head_dim <= Attention.front().head_dim ? Attention.front() : Attention.back();
  const auto sequence = static_cast<double>(shape[0]);
  return machine_.peak_bf16.value * (op.phase == Phase::Backward ? shares.backward : shares.forward) *
         std::min(1.0, static_cast<double>(head_dim) / static_cast<double>(shares.head_dim)) * sequence /
         (sequence + HalfRateSequence);
}

auto OpTimes::ProductRate(const Op& op) const -> double {
  const bool is_bf16 = plan().values[AccessesOf(op.body)[0].value].dtype == DType::BF16;
  return is_bf16 ? machine_.peak_bf16.value * ProductShare : machine_.peak_f32.value * ProductShareF32;
}

auto OpTimes::OfCollective(const Op& op, const OpCost& cost) const -> OpTime {
  OpTime time{.part = StepPart::Peers, .link = Link::InHost, .device = Meetings, .host = Meetings};
  const CollectiveKind kind = FactsOf(op).collective;
  const double share = kind == CollectiveKind::AllGather ? GatherShare : ReduceShare;
  for (const WireCost& wire : cost.wires) {
    const auto ranks = static_cast<double>(plan().mesh.size(wire.axes));
    const auto between = static_cast<double>(wire.group.between_hosts.value) / ranks;
    const auto all = static_cast<double>(wire.group.all.value) / ranks;
    time.device += (all - between) / (machine_.link_bandwidth.value * share);
    const Exchange exchange = ExchangeOf(plan(), wire.axes);
    if (exchange.crosses()) {
      const auto members = static_cast<double>(exchange.members);
      const bool sends_terms = kind == CollectiveKind::ReduceScatter && !exchange.sums_by_library;
      time.network += between / (machine_.network_bandwidth.value * NetworkShare) +
                      HostStep * std::ceil(std::log2(members)) + (sends_terms ? Message * (members - 1) : 0);
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
    time.host = std::max(time.host, ReadByHost);
  } else if (cost.wires.empty() && bytes > 0 && facts.meaning != Meaning::Renamed) {
    time.host = Launch;
    time.device = bytes / (machine_.memory_bandwidth.value * CopyShare);
    if (cost.matmul_flops > Flops{}) {
      time.part = IsAttention(op) ? StepPart::Attention : StepPart::Product;
      const double rate = IsAttention(op) ? AttentionRate(op) : ProductRate(op);
      time.device = std::max(time.device, static_cast<double>(cost.matmul_flops.value) / rate);
    }
    time.device += Kernel;
  }
  return time;
}

}  // namespace shardc
