// The collectives over a HostGroup: peers read each other's shared arenas in place. The same for ranks that are
// processes (the default on one machine) and for ranks that are threads (tests).
//
//   all-gather       barrier, copy the peers' shards, barrier
//   reduce-scatter   barrier, sum the own slice of the peers' vectors in group order, barrier
//   all-reduce       barrier, sum the own slice of the peers' vectors in group order, barrier, copy the slices that the
//                    peers summed, barrier
//   small ones       copy into the own slot, barrier, read the peers' slots
#pragma once

#include <array>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_group.h"

namespace shardc {

class HostCommunicator final : public Communicator {
 public:
  /// `peers[rank][arena]`: where this rank finds the shared arenas of all ranks (SharedArenas::Peers).
  /// Requires: `group` outlives this; called by the rank itself, once.
  HostCommunicator(HostGroup& group, int64_t rank, std::vector<std::array<std::byte*, NumArenas>> peers,
                   WaitOptions options = {});

  auto rank() const -> int64_t override { return rank_; }
  auto mesh() const -> const Mesh& override { return group_->mesh(); }
  auto SetPosition(Stream stream, int64_t step, SectionKind section, int64_t op_index) -> void override {
    group_->SetPosition(rank_, stream, step, section, op_index);
  }
  auto LeavePosition(Stream stream) -> void override { group_->LeavePosition(rank_, stream); }
  auto AllGather(AxisSet axes, const CommSpan& shard, const CommSpan& full) -> Status override;
  auto ReduceScatter(AxisSet axes, const CommSpan& full, const CommSpan& shard, ReduceTypes types, bool accumulate)
      -> Status override;
  auto AllReduce(AxisSet axes, const CommSpan& span, DType dtype) -> Status override;
  auto AllReduce(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype, ReduceOp op) -> Status override;
  auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status override;
  auto GatherSmall(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto Barrier(AxisSet axes) -> Status override;

 private:
  using Group = HostGroup::Group;

  auto GroupOf(AxisSet axes) const -> const Group& { return groups_[axes.bits]; }
  /// A peer's copy of what `span` is here.
  auto PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte*;
  auto AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status;
  auto NextTurn(const Group& group) -> int;
  auto Meet(const Group& group) -> Status { return group_->Barrier(group, rank_, options_); }

  HostGroup* group_;
  int64_t rank_;
  std::vector<std::array<std::byte*, NumArenas>> peers_;
  WaitOptions options_;
  /// By AxisSet::bits.
  ByAxisSet<Group> groups_;
  /// By Group::axes_index: which of the two slots comes next.
  ByAxisSet<int> turns_{};
  /// Where the group's operands of the collective under way lie; as long as there are ranks from the start, so that a
  /// step allocates nothing.
  std::vector<const std::byte*> sources_;
};

}  // namespace shardc
