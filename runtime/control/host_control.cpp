#include "runtime/control/host_control.h"

namespace shardc {

static_assert(RankControl::MaxBytes <= ControlBlock::SlotBytes);

auto HostControl::Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  const auto& group = member_->GroupOf(axes);
  const int64_t size = std::ssize(group.ranks);
  CHECK(bytes * size <= MaxBytes, "gather of {} x {} bytes", size, bytes);
  Count(bytes, bytes * (size - 1));
  return member_->Gather(group, mine, bytes, all);
}

auto HostControl::Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status {
  const auto& group = member_->GroupOf(axes);
  CHECK(bytes <= MaxBytes, "broadcast of {} bytes", bytes);
  Count(bytes, group.index == 0 ? bytes * (std::ssize(group.ranks) - 1) : 0);
  return member_->Broadcast(group, data, bytes);
}

auto HostControl::Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status {
  const auto& group = member_->GroupOf(axes);
  const int64_t bytes = num_elements * SizeOf(dtype);
  CHECK(bytes <= MaxBytes, "sum of {} bytes", bytes);
  Count(bytes, bytes * (std::ssize(group.ranks) - 1));
  return member_->Sum(group, data, num_elements, dtype);
}

}  // namespace shardc
