// The collectives among ranks of several hosts. The ranks of one host work in the memory that they share; the ranks
// that have the same number on their hosts exchange over TCP, by Gloo. With comm = "gloo-flat" each rank exchanges with
// all others. compiler/plan/exchange.h decides who exchanges what, in pieces that fit into the op's scratch.
//
//   all-gather       copy the shards of the host; for each piece: gather it from the other hosts into scratch, barrier,
//                    copy what the peers on the host gathered, barrier
//   reduce-scatter   for each piece: sum the terms of the host for the slices of all hosts into scratch, send each host
//                    its sum, add up what came
//   all-reduce       sum the own slice over the host; for each piece: send each host its part, add up what came, gather
//                    the sums of the parts; then copy the slices that the peers on the host summed
#pragma once

#include <memory>
#include <vector>

#include "compiler/plan/exchange.h"
#include "runtime/comm/host_communicator.h"
#include "runtime/net/peer_group.h"

namespace shardc {

class GlooCommunicator final : public HostCommunicator {
 public:
  /// The ranks with which a rank exchanges over the network for one set of axes.
  struct Peers {
    shardc::Exchange exchange;
    /// Null where exchange.crosses() is false, or where no op of the plan asks for the set.
    std::shared_ptr<PeerGroup> group;
    /// Of its members.
    std::vector<int64_t> ranks;
  };

  GlooCommunicator(std::shared_ptr<HostMember> member, PeerTable peers, const Mesh& mesh, ByAxisSet<Peers> remote);

  auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full, const CommSpan& scratch)
      -> Status override;
  auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard, const CommSpan& scratch,
                     ReduceTypes types, bool accumulate) -> Status override;
  auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
      -> Status override;
  auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;

 private:
  /// One collective of one group that lies on several hosts, with what it has sent so far.
  class Crossing;

  auto AllReduceSmall(Crossing& crossing, const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status;
  auto AllReduceBySlices(Crossing& crossing, const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status;

  ByAxisSet<Peers> remote_;
  /// What Exchange gathers on the host, before the hosts exchange it.
  std::vector<std::byte> of_host_;
  /// As HostCommunicator::sources_, for what came from other hosts.
  std::vector<const std::byte*> parts_;
};

}  // namespace shardc
