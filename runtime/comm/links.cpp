#include "runtime/comm/links.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "compiler/base/mapped.h"
#include "compiler/ops/communicators.h"
#include "compiler/plan/exchange.h"
#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/gloo_groups.h"
#include "runtime/comm/layered_communicator.h"
#include "runtime/comm/nccl/nccl_group.h"
#include "runtime/control/host_control.h"
#include "runtime/control/hosts_control.h"
#include "runtime/device/family.h"

namespace shardc {

namespace {

/// Ranks that exchange over the network.
struct RemoteMembers {
  /// Name of the group, one for all of them and for no others.
  std::string name;
  int64_t index = 0;
  std::vector<int64_t> ranks;

  auto Names() const -> std::vector<std::string> {
    return Mapped<std::string>(ranks, [](const int64_t rank) { return fmt::format("rank {}", rank); });
  }
};

}  // namespace

/// Connects the rank with those of other hosts that it exchanges with over `sets`, by connect(RemoteMembers). Sets with
/// the same members share what that gives.
template <class Group, class Connect>
static auto ConnectMembers(const Plan& plan, int64_t rank, const ByAxisSet<bool>& sets, const Connect& connect)
    -> ErrorOr<ByAxisSet<Group>> {
  ByAxisSet<Group> all;
  std::map<std::vector<int64_t>, Group> made;
  for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
    if (!sets[bits]) {
      continue;
    }
    const AxisSet axes{bits};
    RemoteMembers remote{.name = "", .ranks = RemoteRanks(plan, axes, rank)};
    auto known = made.find(remote.ranks);
    if (known == made.end()) {
      // The first of them is in no other group over these axes.
      remote.name = fmt::format("{}.{}", ToText(axes), remote.ranks.front());
      remote.index = std::ranges::find(remote.ranks, rank) - remote.ranks.begin();
      ASSIGN_OR_RETURN(auto connected, connect(remote));
      known = made.emplace(remote.ranks, std::move(connected)).first;
    }
    all[bits] = known->second;
  }
  return all;
}

/// Returns a function that fails if another rank has failed.
static auto LookOf(const HostMember& member) -> std::function<Status()> {
  return [&block = member.block(), rank = member.rank()] { return block.Listen(rank); };
}

static auto ConnectByGloo(const Plan& plan, const std::shared_ptr<HostMember>& member, JobStore& store,
                          const Network& network, Seconds timeout, const ByAxisSet<bool>& sets)
    -> ErrorOr<std::shared_ptr<GlooGroups>> {
  const auto connect = [&](const RemoteMembers& remote) -> ErrorOr<GlooGroups::Members> {
    ASSIGN_OR_RETURN(auto group, PeerGroup::Create(store, {.name = remote.name,
                                                           .index = remote.index,
                                                           .size = std::ssize(remote.ranks),
                                                           .members = remote.Names(),
                                                           .own_address = network.own_address,
                                                           .host_name = network.host_name,
                                                           .timeout = timeout}));
    return GlooGroups::Members{.group = std::move(group), .ranks = remote.ranks};
  };
  ASSIGN_OR_RETURN(auto members, ConnectMembers<GlooGroups::Members>(plan, member->rank(), sets, connect));
  return std::make_shared<GlooGroups>(member, std::move(members));
}

static auto ConnectByNccl(const Plan& plan, const HostMember& member, JobStore& store, const Network& network,
                          Seconds timeout) -> ErrorOr<std::shared_ptr<NcclGroups>> {
  NcclApi& api = PartsOf(FactsOf(plan.device).family).nccl();
  if (plan.run.share_gpus) {
    // NCCL takes two ranks on one GPU for a mistake, unless it is told that they are on two hosts.
    setenv("NCCL_HOSTID", fmt::format("shardc-{}", member.rank()).c_str(), /*overwrite=*/0);
  }
  const auto look = LookOf(member);
  const auto connect = [&](const RemoteMembers& remote) -> ErrorOr<std::shared_ptr<NcclGroup>> {
    ASSIGN_OR_RETURN(auto group, NcclGroup::Create(api, store,
                                                   {.name = remote.name,
                                                    .index = remote.index,
                                                    .size = std::ssize(remote.ranks),
                                                    .members = remote.Names(),
                                                    .host_name = network.host_name,
                                                    .look = look,
                                                    .timeout = timeout}));
    return std::shared_ptr<NcclGroup>(std::move(group));
  };
  ASSIGN_OR_RETURN(auto groups, ConnectMembers<std::shared_ptr<NcclGroup>>(
                                    plan, member.rank(), ExchangedSets(plan, /*agree=*/false), connect));
  return std::make_shared<NcclGroups>(std::move(groups), look);
}

auto MakeLinks(const Plan& plan, const std::shared_ptr<HostMember>& member, RankDevice& device,
               const SharedArenas& arenas, Seconds timeout, const Network* network) -> ErrorOr<Links> {
  CHECK(plan.run.comm != Comm::Auto, "a plan names how its ranks communicate");
  Links links;
  std::shared_ptr<GlooGroups> by_gloo;
  std::shared_ptr<NcclGroups> by_nccl;
  if (plan.run.comm == Comm::Shm) {
    links.control = std::make_unique<HostControl>(member);
  } else {
    CHECK(network != nullptr, "ranks of several hosts without a network");
    ASSIGN_OR_RETURN(auto store,
                     JobStore::Connect(network->store, network->prefix, timeout, {.interrupt = LookOf(*member)}));
    // Memory of the host goes by Gloo on each device.
    ByAxisSet<bool> sets = ExchangedSets(plan, /*agree=*/true);
    if (IsByGloo(plan.run.comm)) {
      const ByAxisSet<bool> others = ExchangedSets(plan, /*agree=*/false);
      for (size_t i = 0; i < sets.size(); ++i) {
        sets[i] = sets[i] || others[i];
      }
    } else {
      ASSIGN_OR_RETURN(by_nccl, ConnectByNccl(plan, *member, *store, *network, timeout));
    }
    ASSIGN_OR_RETURN(by_gloo, ConnectByGloo(plan, member, *store, *network, timeout, sets));
    store->WaitOnly();
    links.control = std::make_unique<HostsControl>(member, plan.mesh, std::move(store), timeout);
  }
  std::unique_ptr<Engine> engine;
  if (const auto make_engine = PartsOf(FactsOf(plan.device).family).make_engine; make_engine != nullptr) {
    ASSIGN_OR_RETURN(engine, make_engine(device, member, by_nccl));
  } else {
    engine = std::make_unique<CpuEngine>(member, arenas.Peers(), by_gloo);
  }
  if (by_nccl != nullptr) {
    // They end with the links, which the device outlives.
    const std::weak_ptr<NcclGroups> groups = by_nccl;
    device.LookAlso({.look =
                         [groups] {
                           const auto living = groups.lock();
                           return living == nullptr ? Status(Success{}) : living->Check();
                         },
                     .hint =
                         [groups] {
                           const auto living = groups.lock();
                           return living == nullptr ? "" : living->LastText();
                         }});
  }
  links.communicator = std::make_unique<LayeredCommunicator>(
      std::move(engine), plan.mesh, plan.run.comm,
      [by_gloo](AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) {
        return by_gloo->Gather(axes, mine, bytes, all);
      });
  return links;
}

}  // namespace shardc
