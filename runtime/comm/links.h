// What connects one rank with its peers.
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/control/control_block.h"
#include "runtime/control/rank_control.h"
#include "runtime/device/device.h"
#include "runtime/memory/arenas.h"
#include "runtime/net/address.h"

namespace shardc {

/// How this process reaches those of other hosts.
struct Network {
  /// Of the job.
  Endpoint store;
  /// What messages call the host of the store.
  std::string store_host;
  /// Of its keys.
  std::string prefix;
  /// Address or interface by which the other hosts reach this one.
  std::string own_address;
  /// What messages on other hosts call this one.
  std::string host_name;
};

struct Links {
  std::unique_ptr<RankControl> control;
  std::unique_ptr<Communicator> communicator;
};

/// The one place that chooses by `plan.run.comm`. Called by the rank itself (after the fork). `timeout`: for what goes
/// to other hosts, by `network`, which is null where all ranks share memory. Requires: `device`, `arenas` and the
/// control block outlive the links, and the rank has joined the block. Errors: those of the store, of connections to
/// other hosts, and of memory that ranks do not get to share.
auto MakeLinks(const Plan& plan, const std::shared_ptr<HostMember>& member, RankDevice& device,
               const SharedArenas& arenas, Seconds timeout, const Network* network) -> ErrorOr<Links>;

}  // namespace shardc
