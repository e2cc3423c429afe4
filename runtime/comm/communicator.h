// The collectives of a plan, as one rank takes part in them. What else ranks tell each other is their control's
// (runtime/control). The body is LayeredCommunicator, over the engine of a device.
// Sums are taken by Fold, or as it takes them, so a result depends on neither timing nor engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/op.h"
#include "compiler/plan/types.h"
#include "runtime/control/fold.h"
#include "runtime/control/traffic.h"

namespace shardc {

class Queue;

/// Memory of this rank that takes part in a collective. `arena` and `offset` say where the peers keep theirs: a plan
/// places the same value at the same offset on every rank.
struct CommSpan {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Arena arena = Arena::Transient;
  int64_t offset = 0;
};

/// What a rank sent, of each kind of collective, by AxisSet::bits.
struct TrafficTable {
  std::array<ByAxisSet<Traffic>, CountOf<CollectiveKind>()> rows{};

  auto At(CollectiveKind kind, AxisSet axes) -> Traffic& { return rows[static_cast<size_t>(kind)][axes.bits]; }
};

/// Every call is collective over the group of `axes`: the ranks that share the other coordinates. It is enqueued on
/// `queue`, in whose turn it is made: a communicator of the CPU has done it on return. After it, this rank may reuse
/// its operands, and no peer reads or writes them any more. Errors: ExitCode::Environment with the peer's rank, if a
/// peer died or did not come within the timeout.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// full = the group's shards in group order. Requires: shard lies in a shared arena; full.bytes = shard.bytes *
  /// group.
  virtual auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full,
                         const CommSpan& scratch) -> Status = 0;
  /// shard (+)= own slice of the sum of the group's full vectors; with `accumulate`, shard + that sum. `shard` is the
  /// own slice of `full` or apart from it. Requires: full lies in a shared arena; both are F32, F64 or BF16 (summed in
  /// f32, rounded once), or full is BF16 and shard F32.
  virtual auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard,
                             const CommSpan& scratch, ReduceTypes types, bool accumulate) -> Status = 0;
  /// The sum, in place. By slices where the vector lies in a shared arena: each rank sums one and copies the others.
  /// Dtypes F32, F64, I64.
  virtual auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
      -> Status = 0;
  /// Each rank's `bytes` of `mine`, in group order, into `all`: what the plan's op `control` exchanges. Both are memory
  /// of the host, which is ready on return.
  virtual auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status = 0;

  /// Ends together with the peers, once all that was enqueued is over: afterwards no peer uses this rank's memory.
  virtual auto Close() -> Status { return Success{}; }

  /// What was sent so far.
  auto traffic() const -> const TrafficTable& { return traffic_; }
  /// What was sent since `before`, an earlier traffic(), was no run of the plan's and does not count.
  auto ForgetTrafficSince(const TrafficTable& before) -> void { traffic_ = before; }

 protected:
  /// One more call.
  auto Count(CollectiveKind kind, AxisSet axes, int64_t payload, int64_t wire, int64_t between_hosts = 0) -> void {
    traffic_.At(kind, axes).Add({.calls = 1, .payload = payload, .wire = wire, .between_hosts = between_hosts});
  }

 private:
  TrafficTable traffic_;
};

}  // namespace shardc
