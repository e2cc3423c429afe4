// The collectives of one rank. Bodies: shared memory (processes of one host) and threads (ranks in one process, for
// tests). Sums are taken in fp32 (f64 for f64) in rank order, so a result does not depend on timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
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
  /// Where this rank is in the plan, so that the peers' messages can tell. Called before each op; one relaxed store.
  virtual auto SetPosition(int64_t step, int64_t op_index) -> void {
    static_cast<void>(step);
    static_cast<void>(op_index);
  }

  /// full = the group's shards in group order. Requires: shard lies in a shared arena; full.bytes = shard.bytes *
  /// group.
  virtual auto AllGather(AxisSet axes, const CommSpan& shard, const CommSpan& full) -> Status = 0;
  /// shard (+)= own slice of the sum of the group's full vectors; with `accumulate`, shard + that sum. `shard` is the
  /// own slice of `full` or apart from it. Requires: full lies in a shared arena; both are F32, F64 or BF16 (summed in
  /// f32, rounded once), or full is BF16 and shard F32.
  virtual auto ReduceScatter(AxisSet axes, const CommSpan& full, const CommSpan& shard, ReduceTypes types,
                             bool accumulate) -> Status = 0;
  /// In place, for small vectors: at most MaxSmallBytes. Dtypes F32, F64, I64.
  virtual auto AllReduce(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype, ReduceOp op) -> Status = 0;
  /// `data` of group member 0 goes to all. At most MaxSmallBytes a call.
  virtual auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status = 0;
  /// Every rank's `bytes` of `mine`, in rank order, into `all`. At most MaxSmallBytes in total.
  virtual auto GatherSmall(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status = 0;
  virtual auto Barrier(AxisSet axes) -> Status = 0;

  static constexpr int64_t MaxSmallBytes = int64_t{1} << 20;
};

}  // namespace shardc
