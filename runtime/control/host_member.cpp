#include "runtime/control/host_member.h"

#include <algorithm>
#include <cstring>

#include "runtime/control/fold.h"

namespace shardc {

HostMember::HostMember(ControlBlock& block, int64_t rank, WaitOptions options)
    : block_(&block), rank_(rank), options_(std::move(options)) {
  for (uint8_t bits = 0; bits < groups_.size(); ++bits) {
    groups_[bits] = block.GroupOf(AxisSet{bits}, rank);
  }
  slots_.reserve(static_cast<size_t>(block.ranks().size()));
}

// The peers may still read the slot of the last small collective over these axes, but not the one before: they came to
// the last one's barrier after reading it.
auto HostMember::NextTurn(const Group& group) -> int {
  int& turn = turns_[group.axes_index];
  turn = 1 - turn;
  return turn;
}

auto HostMember::Gather(const Group& group, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  CHECK(bytes <= ControlBlock::SlotBytes, "gather of {} bytes per rank", bytes);
  if (group.ranks.size() == 1) {
    std::memcpy(all, mine, static_cast<size_t>(bytes));
    return Meet(group);
  }
  const int turn = NextTurn(group);
  std::memcpy(block_->Slot(group, rank_, turn), mine, static_cast<size_t>(bytes));
  RETURN_IF_ERROR(Meet(group));
  for (const int64_t peer : group.ranks) {
    std::memcpy(all, block_->Slot(group, peer, turn), static_cast<size_t>(bytes));
    all += bytes;
  }
  return Success{};
}

auto HostMember::Broadcast(const Group& group, std::byte* data, int64_t bytes) -> Status {
  CHECK(bytes <= ControlBlock::SlotBytes, "broadcast of {} bytes", bytes);
  if (group.ranks.size() == 1) {
    return Meet(group);
  }
  std::byte* slot = block_->Slot(group, group.ranks[0], NextTurn(group));
  if (group.index == 0) {
    std::memcpy(slot, data, static_cast<size_t>(bytes));
  }
  RETURN_IF_ERROR(Meet(group));
  if (group.index != 0) {
    std::memcpy(data, slot, static_cast<size_t>(bytes));
  }
  return Success{};
}

auto HostMember::Sum(const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host)
    -> Status {
  const int64_t most = ControlBlock::SlotBytes / SizeOf(dtype);
  int64_t begin = 0;
  do {
    const int64_t count = std::min(most, num_elements - begin);
    RETURN_IF_ERROR(SumPiece(group, data + begin * SizeOf(dtype), count, dtype, per_host));
    begin += count;
  } while (begin < num_elements);
  return Success{};
}

auto HostMember::SumPiece(const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host)
    -> Status {
  if (group.ranks.size() == 1) {
    return Meet(group);
  }
  const int turn = NextTurn(group);
  std::memcpy(block_->Slot(group, rank_, turn), data, static_cast<size_t>(num_elements * SizeOf(dtype)));
  RETURN_IF_ERROR(Meet(group));
  slots_.clear();
  for (const int64_t peer : group.ranks) {
    slots_.push_back(block_->Slot(group, peer, turn));
  }
  Fold(slots_, static_cast<size_t>(per_host), data, num_elements, {.terms = dtype, .sum = dtype}, false);
  return Success{};
}

}  // namespace shardc
