// How a rank meets the ranks of its host, and the small collectives by which they exchange what fits into a slot of the
// control block. Agreements (host_control.h) and the collectives of the plan
// (runtime/comm/cpu_engine.h) are made of these.
//
//   small collective    copy into the own slot, barrier, read the peers' slots
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/types.h"
#include "runtime/control/control_block.h"

namespace shardc {

class HostMember {
 public:
  using Group = ControlBlock::Group;

  /// Requires: `block` outlives this, and the rank has joined it.
  HostMember(ControlBlock& block, int64_t rank, WaitOptions options = {});

  auto rank() const -> int64_t { return rank_; }
  auto block() const -> ControlBlock& { return *block_; }
  auto GroupOf(AxisSet axes) const -> const Group& { return groups_[axes.bits]; }

  auto Meet(const Group& group) -> Status { return block_->Barrier(group, rank_, options_); }
  /// Gathers `bytes` of each member's `mine` into `all`, in the order of the group. Requires: bytes <= SlotBytes.
  auto Gather(const Group& group, const std::byte* mine, int64_t bytes, std::byte* all) -> Status;
  /// Copies `data` of the group's first member to all. Requires: bytes <= SlotBytes.
  auto Broadcast(const Group& group, std::byte* data, int64_t bytes) -> Status;
  /// Replaces `data` by the sum of the members' data, by Fold: `per_host` of them, in turn, count as of one host.
  /// Dtypes F32, F64, I64. In pieces of SlotBytes.
  auto Sum(const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host) -> Status;
  auto Sum(const Group& group, std::byte* data, int64_t num_elements, DType dtype) -> Status {
    return Sum(group, data, num_elements, dtype, std::ssize(group.ranks));
  }

 private:
  auto NextTurn(const Group& group) -> int;
  auto SumPiece(const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host) -> Status;

  ControlBlock* block_;
  int64_t rank_;
  WaitOptions options_;
  /// By AxisSet::bits.
  ByAxisSet<Group> groups_;
  /// By Group::axes_index: which of the two slots comes next.
  ByAxisSet<int> turns_{};
  /// The slots of a group; as long as there are ranks from the start, so that a step allocates nothing.
  std::vector<const std::byte*> slots_;
};

}  // namespace shardc
