#include "runtime/comm/links.h"

#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"
#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/layered_communicator.h"
#include "runtime/control/host_control.h"
#include "runtime/control/hosts_control.h"
#include "runtime/device/family.h"

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
static auto ConnectMembers(const Plan& plan, int64_t rank, JobStore& store, const Network& network, Seconds timeout)
    -> ErrorOr<ByAxisSet<CpuEngine::Members>> {
  const Mesh& mesh = plan.mesh;
  const ByAxisSet<bool> sets = SetsOf(plan);
  ByAxisSet<CpuEngine::Members> all;
  ByAxisSet<CpuEngine::Members> made;
  for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
    const AxisSet axes{bits};
    const Exchange exchange = ExchangeOf(plan, axes);
    if (!sets[bits] || !exchange.crosses()) {
      continue;
    }
    CpuEngine::Members& members = made[Spread(mesh, axes).bits];
    if (members.group == nullptr) {
      const int64_t index = mesh.IndexIn(axes, rank);
      const int64_t number = index % exchange.local;
      std::vector<std::string> names;
      const std::vector<int64_t> ranks = mesh.Group(axes, rank);
      for (int64_t member = 0; member < exchange.members; ++member) {
        members.ranks.push_back(ranks[static_cast<size_t>(member * exchange.local + number)]);
        names.push_back(fmt::format("rank {}", members.ranks.back()));
      }
      auto created = PeerGroup::Create(
          store, {.name = fmt::format("{}.{}.{}", ToText(Spread(mesh, axes)), mesh.GroupNumber(axes, rank), number),
                  .index = index / exchange.local,
                  .size = exchange.members,
                  .members = std::move(names),
                  .own_address = network.own_address,
                  .host_name = network.host_name,
                  .timeout = timeout});
      if (!created) {
        return created.error();
      }
      members.group = *std::move(created);
    }
    all[bits] = members;
  }
  return all;
}

auto MakeLinks(const Plan& plan, const std::shared_ptr<HostMember>& member, RankDevice& device,
               const SharedArenas& arenas, Seconds timeout, const Network* network) -> ErrorOr<Links> {
  CHECK(plan.run.comm != Comm::Auto, "a plan names how its ranks communicate");
  Links links;
  ByAxisSet<CpuEngine::Members> remote;
  switch (plan.run.comm) {
    case Comm::Auto: break;
    case Comm::Shm: links.control = std::make_unique<HostControl>(member); break;
    case Comm::Gloo:
    case Comm::GlooFlat: {
      CHECK(network != nullptr, "ranks of several hosts without a network");
      auto store = JobStore::Connect(network->store, network->prefix, timeout);
      if (!store) {
        return store.error();
      }
      auto connected = ConnectMembers(plan, member->rank(), **store, *network, timeout);
      if (!connected) {
        return connected.error();
      }
      remote = *std::move(connected);
      links.control = std::make_unique<HostsControl>(member, plan.mesh, *std::move(store), timeout);
    }
  }
  std::unique_ptr<Engine> engine;
  if (const auto make_engine = PartsOf(FactsOf(plan.device).family).make_engine; make_engine != nullptr) {
    auto made = make_engine(device, member, *links.control);
    if (!made) {
      return made.error();
    }
    engine = *std::move(made);
  } else {
    engine = std::make_unique<CpuEngine>(member, arenas.Peers(), std::move(remote));
  }
  links.communicator = std::make_unique<LayeredCommunicator>(std::move(engine), plan.mesh, plan.run.comm);
  return links;
}

}  // namespace shardc
