// The ranks of other hosts with which a rank exchanges memory of the host, by Gloo: what the plan's op `control`
// exchanges, and on CPUs all that collectives move between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "runtime/control/host_member.h"
#include "runtime/net/peer_group.h"

namespace shardc {

class GlooGroups {
 public:
  /// The members of a group, for one set of axes.
  struct Members {
    /// Null if no rank exchanges over the set, or if no op of the plan asks for it.
    std::shared_ptr<PeerGroup> group;
    std::vector<int64_t> ranks;
  };

  GlooGroups(std::shared_ptr<HostMember> member, ByAxisSet<Members> members)
      : member_(std::move(member)), members_(std::move(members)) {}

  /// Gathers as PeerGroup::AllGather does.
  auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status;
  /// Exchanges as PeerGroup::AllToAll does.
  auto AllToAll(AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes) -> Status;

 private:
  /// Calls exchange(group), and says for as long that this rank waits for those of other hosts.
  template <class Function>
  auto WaitForMembers(AxisSet axes, const Function& exchange) -> Status;

  std::shared_ptr<HostMember> member_;
  ByAxisSet<Members> members_;
};

}  // namespace shardc
