// The collectives among ranks of one host: peers read each other's shared arenas in place. The same for ranks that are
// processes (the default on one machine) and for ranks that are threads (tests).
//
//   all-gather       barrier, copy the peers' shards, barrier
//   reduce-scatter   barrier, sum the own slice of the peers' vectors, barrier
//   all-reduce       barrier, sum the own slice of the peers' vectors, barrier, copy the slices that the peers summed,
//                    barrier
//   exchange         a small collective of the control block, as are sums in private arenas
#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/control/host_member.h"
#include "runtime/memory/arenas.h"

namespace shardc {

class HostCommunicator : public Communicator {
 public:
  /// `peers`: where this rank finds the shared arenas of the ranks of its host (SharedArenas::Peers), first rank first.
  /// `mesh`: the plan's, whose hosts decide in which order sums are taken.
  HostCommunicator(std::shared_ptr<HostMember> member, PeerTable peers, const Mesh& mesh);

  auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full, const CommSpan& scratch)
      -> Status override;
  auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard, const CommSpan& scratch,
                     ReduceTypes types, bool accumulate) -> Status override;
  auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
      -> Status override;
  auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;

 protected:
  using Group = HostMember::Group;

  auto rank() const -> int64_t { return member_->rank(); }
  auto member() const -> HostMember& { return *member_; }
  /// The ranks of the group on this host.
  auto GroupOf(AxisSet axes) const -> const Group& { return member_->GroupOf(axes); }
  /// A peer's copy of what `span` is here.
  auto PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte*;
  /// Writes the sum of what the ranks of the group on this host have in `terms` to `out`. Adds what this rank takes
  /// from its peers to `taken`.
  auto FoldPeers(AxisSet axes, const CommSpan& terms, std::byte* out, ReduceTypes types, bool accumulate,
                 int64_t& taken) -> void;
  /// The slice of `span` that rank `index` of `num_ranks` sums in an all-reduce.
  static auto SliceOf(const CommSpan& span, int64_t index, int64_t num_ranks) -> CommSpan;
  /// Copies the slices that the peers have summed.
  auto CopySlices(AxisSet axes, const CommSpan& span, int64_t& taken) -> void;

 private:
  auto AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status;
  /// How many of the group's ranks on this host count as of one host.
  auto PerHost(AxisSet axes) const -> int64_t;

  std::shared_ptr<HostMember> member_;
  PeerTable peers_;
  Mesh mesh_;
  /// Where the group's operands of the collective under way lie; as long as there are ranks from the start, so that a
  /// step allocates nothing.
  std::vector<const std::byte*> sources_;
};

/// `bytes` of a span, from its byte `begin` on.
inline auto PartOf(const CommSpan& span, int64_t begin, int64_t bytes) -> CommSpan {
  return {.data = span.data + begin, .bytes = bytes, .arena = span.arena, .offset = span.offset + begin};
}

}  // namespace shardc
