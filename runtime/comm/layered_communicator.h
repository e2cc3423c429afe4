// The collectives of a plan, in two layers: the ranks of one host work in memory that they share; the ranks that have
// the same number on their hosts exchange. With a flat comm each rank exchanges with all others.
// compiler/plan/exchange.h decides who exchanges what, in pieces that fit into the op's scratch.
//
//   all-gather       meet, copy the shards of the host, meet. Between hosts, for each piece: gather it from the other
//                    hosts into scratch, meet, copy what the peers on the host gathered, meet
//   reduce-scatter   meet, sum the own slice of the peers' vectors, meet. Between hosts, for each piece: sum the terms
//                    of the host for the slices of all hosts into scratch, send each host its sum, add up what came
//   all-reduce       meet, sum the own slice of the peers' vectors, meet, copy the slices that the peers summed, meet.
//                    Between hosts, for each piece of the own slice: send each host its part, add up what came, gather
//                    the sums of the parts
//   exchange         a small collective of the control block, as are sums in private arenas. Between hosts, memory of
//                    the hosts is gathered, whatever the device is
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/comm/engine.h"

namespace shardc {

class LayeredCommunicator final : public Communicator {
 public:
  /// Gathers as Engine::Gather does, but memory of the host, which is ready on return.
  using GatherOverHosts = std::function<Status(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all)>;

  /// Takes mesh and comm of the plan. The hosts of the mesh decide in which order sums are taken. `gather_over_hosts`:
  /// for Exchange, where one crosses hosts.
  LayeredCommunicator(std::unique_ptr<Engine> engine, const Mesh& mesh, Comm comm,
                      GatherOverHosts gather_over_hosts = nullptr);

  auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full, const CommSpan& scratch)
      -> Status override;
  auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard, const CommSpan& scratch,
                     ReduceTypes types, bool accumulate) -> Status override;
  auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
      -> Status override;
  auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto Close() -> Status override { return engine_->Close(); }

 private:
  /// One collective of one group, with what it has sent so far.
  class Call;

  std::unique_ptr<Engine> engine_;
  Mesh mesh_;
  Comm comm_;
  GatherOverHosts gather_over_hosts_;
  /// Words that Exchange gathers on the host, before the hosts exchange them.
  std::vector<std::byte> of_host_;
  /// Places of the terms of a sum; as long as there are ranks from the start, so that a step allocates nothing.
  std::vector<const std::byte*> terms_;
};

}  // namespace shardc
