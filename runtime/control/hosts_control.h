// The control among the ranks of several hosts. What the ranks of one host tell each other goes through their control
// block. What hosts tell each other goes through the store of the job: of each group the first rank on a host speaks
// for those beside it, in a constant number of calls, however many hosts there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/control/host_control.h"
#include "runtime/net/store.h"

namespace shardc {

class HostsControl final : public HostControl {
 public:
  /// Takes the plan's `mesh`. `timeout`: how long an agreement waits for the other hosts.
  HostsControl(std::shared_ptr<HostMember> member, const Mesh& mesh, std::unique_ptr<JobStore> store, Seconds timeout);

  auto mesh() const -> const Mesh& override { return mesh_; }
  auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status override;
  auto Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status override;
  auto Barrier(AxisSet axes) -> Status override;

 private:
  /// The part of a group that lies on this host.
  struct Part {
    const HostMember::Group& ranks;
    /// Hosts of the group, and which of them this is.
    int64_t num_hosts;
    int64_t host;
    bool leads() const { return ranks.index == 0; }
  };
  auto PartOf(AxisSet axes) const -> Part;
  /// Returns a key that no agreement had before, and that is the same on all ranks of the group.
  auto NextKey(std::string_view what, AxisSet axes) -> std::string;
  /// Gathers the texts of the hosts of a group, in their order. `key`: as NextKey made it.
  auto GatherOverHosts(const Part& part, const std::string& key, std::string_view mine)
      -> ErrorOr<std::vector<std::string>>;
  /// Gathers without counting traffic.
  auto GatherBytes(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status;

  Mesh mesh_;
  std::unique_ptr<JobStore> store_;
  Seconds timeout_;
  /// Agreements over each set of axes so far.
  ByAxisSet<int64_t> num_agreements_{};
};

}  // namespace shardc
