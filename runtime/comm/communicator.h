// The collectives of one rank. Bodies: shared memory (processes of one host) and threads (ranks in one process, for
// tests). Sums are taken in fp32 (f64 for f64) in rank order, so a result does not depend on timing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/op.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Memory of this rank that takes part in a collective. `arena` and `offset` say where the peers keep theirs: a plan
/// places the same value at the same offset on every rank.
struct CommSpan {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Arena arena = Arena::Transient;
  int64_t offset = 0;
};

/// Collectives of the plan's ops of one kind over one set of axes, as this rank did them.
struct Traffic {
  int64_t calls = 0;
  /// Bytes of the full vectors.
  int64_t payload = 0;
  /// Bytes that went from peers to this rank, and as many in turn from this rank to peers.
  int64_t wire = 0;

  friend auto operator==(const Traffic&, const Traffic&) -> bool = default;
};

/// Of each kind of collective, by AxisSet::bits.
struct TrafficTable {
  std::array<ByAxisSet<Traffic>, CountOf<CollectiveKind>()> rows{};

  auto At(CollectiveKind kind, AxisSet axes) -> Traffic& { return rows[static_cast<size_t>(kind)][axes.bits]; }
};

enum class ReduceOp : uint8_t { Sum, Min, Max };

/// Of what is summed, and of the sum.
struct ReduceTypes {
  DType terms = DType::F32;
  DType sum = DType::F32;
};

/// Every call is collective over the group of `axes`: the ranks that share the other coordinates. On return this rank
/// may reuse its operands and no peer reads or writes them any more.
/// Errors: ExitCode::Environment with the peer's rank, when a peer died or did not come within the timeout.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual auto rank() const -> int64_t = 0;
  virtual auto mesh() const -> const Mesh& = 0;
  /// Where a stream of this rank is in the plan, so that the peers' messages can tell. Called before each op; two
  /// relaxed stores.
  virtual auto SetPosition(Stream stream, int64_t step, SectionKind section, int64_t op_index) -> void {
    static_cast<void>(stream);
    static_cast<void>(step);
    static_cast<void>(section);
    static_cast<void>(op_index);
  }
  /// The op of the last SetPosition of this stream is over.
  virtual auto LeavePosition(Stream stream) -> void { static_cast<void>(stream); }

  /// full = the group's shards in group order. Requires: shard lies in a shared arena; full.bytes = shard.bytes *
  /// group.
  virtual auto AllGather(AxisSet axes, const CommSpan& shard, const CommSpan& full) -> Status = 0;
  /// shard (+)= own slice of the sum of the group's full vectors; with `accumulate`, shard + that sum. `shard` is the
  /// own slice of `full` or apart from it. Requires: full lies in a shared arena; both are F32, F64 or BF16 (summed in
  /// f32, rounded once), or full is BF16 and shard F32.
  virtual auto ReduceScatter(AxisSet axes, const CommSpan& full, const CommSpan& shard, ReduceTypes types,
                             bool accumulate) -> Status = 0;
  /// The sum, in place. By slices where the vector lies in a shared arena: each rank sums one and copies the others.
  /// Dtypes F32, F64, I64.
  virtual auto AllReduce(AxisSet axes, const CommSpan& span, DType dtype) -> Status = 0;
  /// Each rank's `mine`, which the plan's op `control` exchanges.
  auto Exchange(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status;

  // What follows is small: what no op of the plan is, and the sums that take it as their body.

  /// In place: at most MaxSmallBytes. Dtypes F32, F64, I64.
  virtual auto AllReduce(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype, ReduceOp op) -> Status = 0;
  /// `data` of group member 0 goes to all. At most MaxSmallBytes a call.
  virtual auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status = 0;
  /// Every rank's `bytes` of `mine`, in rank order, into `all`. At most MaxSmallBytes in total.
  virtual auto GatherSmall(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status = 0;
  virtual auto Barrier(AxisSet axes) -> Status = 0;

  static constexpr int64_t MaxSmallBytes = int64_t{1} << 20;

  /// What the plan's ops sent so far, and what went beside them: agreements, comparisons, checkpoints.
  auto traffic() const -> const TrafficTable& { return traffic_; }
  auto small_traffic() const -> const Traffic& { return small_; }
  /// What was sent since `before`, an earlier traffic(), was no run of the plan's and does not count.
  auto ForgetTrafficSince(const TrafficTable& before) -> void { traffic_ = before; }

 protected:
  auto Count(CollectiveKind kind, AxisSet axes, const Traffic& traffic) -> void;
  /// The small collectives since `before` were the body of one call of the plan.
  auto CountAs(CollectiveKind kind, AxisSet axes, int64_t payload, const Traffic& before) -> void;
  auto CountSmall(int64_t payload, int64_t wire) -> void;

 private:
  TrafficTable traffic_;
  Traffic small_;
};

}  // namespace shardc
