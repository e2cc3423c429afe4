#include "runtime/comm/links.h"

#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"
#include "runtime/comm/gloo_communicator.h"
#include "runtime/comm/host_communicator.h"
#include "runtime/control/host_control.h"
#include "runtime/control/hosts_control.h"

namespace shardc {

/// Sets over which an op of the plan communicates.
static auto SetsOf(const Plan& plan) -> ByAxisSet<bool> {
  ByAxisSet<bool> sets{};
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      if (FactsOf(op).collective != CollectiveKind::None) {
        sets[AttributeOf<AxisSet>(op.body, "axes")->bits] = true;
      }
    }
  }
  return sets;
}

/// Connects the rank with those of other hosts that it exchanges with. Sets that have the same groups share one.
static auto ConnectPeers(const Plan& plan, int64_t rank, JobStore& store, const Network& network, Seconds timeout)
    -> ErrorOr<ByAxisSet<GlooCommunicator::Peers>> {
  const Mesh& mesh = plan.mesh;
  const ByAxisSet<bool> sets = SetsOf(plan);
  ByAxisSet<GlooCommunicator::Peers> all;
  ByAxisSet<GlooCommunicator::Peers> made;
  for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
    const AxisSet axes{bits};
    GlooCommunicator::Peers& peers = all[bits];
    peers.exchange = ExchangeOf(plan, axes);
    if (!sets[bits] || !peers.exchange.crosses()) {
      continue;
    }
    GlooCommunicator::Peers& group = made[Spread(mesh, axes).bits];
    if (group.group == nullptr) {
      const int64_t index = mesh.IndexIn(axes, rank);
      const int64_t number = index % peers.exchange.local;
      std::vector<std::string> members;
      const std::vector<int64_t> ranks = mesh.Group(axes, rank);
      for (int64_t member = 0; member < peers.exchange.members; ++member) {
        peers.ranks.push_back(ranks[static_cast<size_t>(member * peers.exchange.local + number)]);
        members.push_back(fmt::format("rank {}", peers.ranks.back()));
      }
      auto created = PeerGroup::Create(
          store, {.name = fmt::format("{}.{}.{}", ToText(Spread(mesh, axes)), mesh.GroupNumber(axes, rank), number),
                  .index = index / peers.exchange.local,
                  .size = peers.exchange.members,
                  .members = std::move(members),
                  .own_address = network.own_address,
                  .host_name = network.host_name,
                  .timeout = timeout});
      if (!created) {
        return created.error();
      }
      peers.group = *std::move(created);
      group = peers;
    }
    peers = group;
  }
  return all;
}

auto MakeLinks(const Plan& plan, int64_t rank, ControlBlock& block, const SharedArenas& arenas,
               const WaitOptions& waits, Seconds timeout, const Network* network) -> ErrorOr<Links> {
  const auto member = std::make_shared<HostMember>(block, rank, waits);
  switch (plan.run.comm) {
    case Comm::Auto: break;
    case Comm::Shm:
      return Links{.control = std::make_unique<HostControl>(member),
                   .communicator = std::make_unique<HostCommunicator>(member, arenas.Peers(), plan.mesh)};
    case Comm::Gloo:
    case Comm::GlooFlat: {
      CHECK(network != nullptr, "ranks of several hosts without a network");
      auto store = JobStore::Connect(network->store, network->prefix, timeout);
      if (!store) {
        return store.error();
      }
      auto peers = ConnectPeers(plan, rank, **store, *network, timeout);
      if (!peers) {
        return peers.error();
      }
      return Links{
          .control = std::make_unique<HostsControl>(member, plan.mesh, *std::move(store), timeout),
          .communicator = std::make_unique<GlooCommunicator>(member, arenas.Peers(), plan.mesh, *std::move(peers))};
    }
  }
  CHECK(false, "comm {}", static_cast<int>(plan.run.comm));
}

}  // namespace shardc
