// The engine of ranks on CPUs: peers of a host read each other's shared arenas in place, be they processes (the default
// on one machine) or threads (tests). Ranks of several hosts exchange over TCP, by Gloo.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "runtime/comm/engine.h"
#include "runtime/comm/gloo_groups.h"
#include "runtime/memory/arenas.h"

namespace shardc {

class CpuEngine : public Engine {
 public:
  /// Takes in `peers` where this rank finds the shared arenas of the ranks of its host (SharedArenas::Peers), first
  /// rank first. `remote`: null if the plan's collectives stay on this host.
  CpuEngine(std::shared_ptr<HostMember> member, PeerTable peers, std::shared_ptr<GlooGroups> remote = nullptr)
      : Engine(std::move(member)), peers_(std::move(peers)), remote_(std::move(remote)) {}

  auto Meet(Queue&, const Group& group) -> Status override { return member().Meet(group); }
  auto Copy(Queue&, std::byte* to, const std::byte* from, int64_t bytes) -> Status override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return Success{};
  }
  auto CopyRows(Queue&, std::byte* to, int64_t stride, const std::byte* from, int64_t bytes, int64_t rows)
      -> Status override {
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * stride, from + row * bytes, static_cast<size_t>(bytes));
    }
    return Success{};
  }
  auto Clear(Queue&, std::byte* to, int64_t bytes) -> Status override {
    std::memset(to, 0, static_cast<size_t>(bytes));
    return Success{};
  }
  auto Fold(Queue&, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
            ReduceTypes types, bool accumulate) -> Status override {
    shardc::Fold(terms, per_host, out, num_elements, types, accumulate);
    return Success{};
  }
  auto Peer(int64_t rank, const CommSpan& span) const -> std::byte* override;
  auto Sum(Queue&, const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host)
      -> Status override {
    return member().Sum(group, data, num_elements, dtype, per_host);
  }
  auto Gather(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto AllToAll(Queue& queue, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                int64_t bytes) -> Status override;

 protected:
  /// Returns the base of an arena of a rank of this host.
  auto BaseOf(int64_t rank, Arena arena) const -> std::byte* {
    return peers_[static_cast<size_t>(rank - member().block().ranks().begin)][static_cast<size_t>(arena)];
  }

 private:
  PeerTable peers_;
  std::shared_ptr<GlooGroups> remote_;
};

}  // namespace shardc
