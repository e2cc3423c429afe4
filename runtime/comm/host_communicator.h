// The collectives among ranks of one host: peers read each other's shared arenas in place. The same for ranks that are
// processes (the default on one machine) and for ranks that are threads (tests).
//
//   all-gather       barrier, copy the peers' shards, barrier
//   reduce-scatter   barrier, sum the own slice of the peers' vectors in group order, barrier
//   all-reduce       barrier, sum the own slice of the peers' vectors in group order, barrier, copy the slices that the
//                    peers summed, barrier
//   exchange         a small collective of the control block, as are sums in private arenas
#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/control/host_member.h"
#include "runtime/memory/arenas.h"

namespace shardc {

class HostCommunicator final : public Communicator {
 public:
  /// `peers`: where this rank finds the shared arenas of the ranks of its host (SharedArenas::Peers), first rank first.
  HostCommunicator(std::shared_ptr<HostMember> member, PeerTable peers);

  auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full) -> Status override;
  auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard, ReduceTypes types,
                     bool accumulate) -> Status override;
  auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, DType dtype) -> Status override;
  auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;

 private:
  using Group = HostMember::Group;

  auto rank() const -> int64_t { return member_->rank(); }
  /// A peer's copy of what `span` is here.
  auto PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte*;
  auto AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status;

  std::shared_ptr<HostMember> member_;
  PeerTable peers_;
  /// Where the group's operands of the collective under way lie; as long as there are ranks from the start, so that a
  /// step allocates nothing.
  std::vector<const std::byte*> sources_;
};

}  // namespace shardc
