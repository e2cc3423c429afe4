// The control among the ranks of one host: all of it goes through their control block.
#pragma once

#include <memory>
#include <utility>

#include "runtime/control/host_member.h"
#include "runtime/control/rank_control.h"

namespace shardc {

class HostControl : public RankControl {
 public:
  explicit HostControl(std::shared_ptr<HostMember> member) : member_(std::move(member)) {}

  auto rank() const -> int64_t override { return member_->rank(); }
  auto mesh() const -> const Mesh& override { return block().mesh(); }
  auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status override;
  auto Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status override;
  auto Barrier(AxisSet axes) -> Status override { return member_->Meet(member_->GroupOf(axes)); }
  auto SetPosition(Stream stream, const Position& position) -> void override {
    block().SetPosition(rank(), stream, position);
  }
  auto LeavePosition(Stream stream) -> void override { block().LeavePosition(rank(), stream); }
  auto StopIsRequested() const -> bool override { return block().stop_flag().load(std::memory_order_relaxed); }
  auto SetCompletedSteps(int64_t steps) -> void override { block().completed_steps().store(steps); }

  auto member() const -> HostMember& { return *member_; }

 private:
  auto block() const -> ControlBlock& { return member_->block(); }

  std::shared_ptr<HostMember> member_;
};

}  // namespace shardc
