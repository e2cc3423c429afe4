#include "runtime/comm/host_communicator.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/bfloat16.h"

namespace shardc {

HostCommunicator::HostCommunicator(HostGroup& group, int64_t rank, std::vector<std::array<std::byte*, NumArenas>> peers,
                                   WaitOptions options)
    : group_(&group), rank_(rank), peers_(std::move(peers)), options_(std::move(options)) {
  for (uint8_t bits = 0; bits < groups_.size(); ++bits) {
    groups_[bits] = group.GroupOf(AxisSet{bits}, rank);
  }
  sources_.reserve(static_cast<size_t>(group.mesh().num_ranks()));
  group.Join(rank);
}

auto HostCommunicator::PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte* {
  const auto at = [&](int64_t rank) {
    return peers_[static_cast<size_t>(rank)][static_cast<size_t>(span.arena)] + span.offset;
  };
  CHECK(peers_[static_cast<size_t>(peer)][static_cast<size_t>(span.arena)] != nullptr && at(rank_) == span.data,
        "a span at offset {} of arena {} that rank {} does not share", span.offset, ToText(span.arena), peer);
  return at(peer);
}

// The peers may still read the slot of the last small collective over these axes, but not the one before: they came to
// the last one's barrier after reading it.
auto HostCommunicator::NextTurn(const Group& group) -> int {
  int& turn = turns_[group.axes_index];
  turn = 1 - turn;
  return turn;
}

auto HostCommunicator::AllGather(AxisSet axes, const CommSpan& shard, const CommSpan& full) -> Status {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  CHECK(full.bytes == shard.bytes * size, "all_gather of {} x {} bytes into {}", size, shard.bytes, full.bytes);
  RETURN_IF_ERROR(Meet(group));
  // Beginning with the next rank, so that not all read one rank's memory at a time, and ending with the own slice: all
  // that is left to do where the others write theirs into the same memory.
  for (int64_t k = full.arena == Arena::Gathered ? size : 1; k <= size; ++k) {
    const int64_t index = (group.index + k) % size;
    std::byte* to = full.data + index * shard.bytes;
    const std::byte* from = k == size ? shard.data : PeerSpan(group.ranks[static_cast<size_t>(index)], shard);
    if (to != from) {
      std::memcpy(to, from, static_cast<size_t>(shard.bytes));
    }
  }
  return Meet(group);
}

/// shard (+)= sum of the slices in their order. In pieces that stay in the first cache.
template <class T>
static auto SumSlices(const std::vector<const std::byte*>& slices, const CommSpan& shard, bool accumulate) -> void {
  T* out = reinterpret_cast<T*>(shard.data);
  const int64_t count = shard.bytes / static_cast<int64_t>(sizeof(T));
  constexpr int64_t Piece = 1024;
  alignas(64) T sum[Piece];
  for (int64_t begin = 0; begin < count; begin += Piece) {
    const int64_t length = std::min(Piece, count - begin);
    std::memcpy(sum, reinterpret_cast<const T*>(slices[0]) + begin, static_cast<size_t>(length) * sizeof(T));
    for (size_t k = 1; k < slices.size(); ++k) {
      const T* source = reinterpret_cast<const T*>(slices[k]) + begin;
      if (length == Piece) {
        // A constant count, so that the loop is made of vectors at -O2 too.
        for (int64_t i = 0; i < Piece; ++i) {
          sum[i] += source[i];
        }
      } else {
        for (int64_t i = 0; i < length; ++i) {
          sum[i] += source[i];
        }
      }
    }
    if (accumulate) {
      for (int64_t i = 0; i < length; ++i) {
        out[begin + i] += sum[i];
      }
    } else {
      std::memcpy(out + begin, sum, static_cast<size_t>(length) * sizeof(T));
    }
  }
}

/// The same of bf16 in f32, rounded once if the sum is bf16 too.
template <class Sum>
static auto SumSlicesOfBFloat16(const std::vector<const std::byte*>& slices, const CommSpan& shard, bool accumulate)
    -> void {
  auto* const out = reinterpret_cast<Sum*>(shard.data);
  const int64_t count = shard.bytes / static_cast<int64_t>(sizeof(Sum));
  constexpr int64_t Piece = 1024;
  alignas(64) float sum[Piece];
  for (int64_t begin = 0; begin < count; begin += Piece) {
    const int64_t length = std::min(Piece, count - begin);
    std::fill_n(sum, length, 0.0F);
    for (const std::byte* slice : slices) {
      const auto* const source = reinterpret_cast<const BFloat16*>(slice) + begin;
      for (int64_t i = 0; i < length; ++i) {
        sum[i] += Load(source[i]);
      }
    }
    for (int64_t i = 0; i < length; ++i) {
      Store(out[begin + i], accumulate ? Load(out[begin + i]) + sum[i] : sum[i]);
    }
  }
}

auto HostCommunicator::ReduceScatter(AxisSet axes, const CommSpan& full, const CommSpan& shard, ReduceTypes types,
                                     bool accumulate) -> Status {
  const auto& [terms, sum] = types;
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  const int64_t slice_bytes = shard.bytes / SizeOf(sum) * SizeOf(terms);
  CHECK(full.bytes == slice_bytes * size, "reduce_scatter of {} bytes into {} x {}", full.bytes, size, slice_bytes);
  sources_.clear();
  for (const int64_t peer : group.ranks) {
    const std::byte* base = peer == rank_ ? full.data : PeerSpan(peer, full);
    sources_.push_back(base + group.index * slice_bytes);
  }
  RETURN_IF_ERROR(Meet(group));
  if (terms == DType::F32 && sum == DType::F32) {
    SumSlices<float>(sources_, shard, accumulate);
  } else if (terms == DType::F64 && sum == DType::F64) {
    SumSlices<double>(sources_, shard, accumulate);
  } else if (terms == DType::BF16 && sum == DType::BF16) {
    SumSlicesOfBFloat16<BFloat16>(sources_, shard, accumulate);
  } else if (terms == DType::BF16 && sum == DType::F32) {
    SumSlicesOfBFloat16<float>(sources_, shard, accumulate);
  } else {
    CHECK(false, "reduce_scatter of {} into {}", ToText(terms), ToText(sum));
  }
  return Meet(group);
}

template <class T>
static auto Combine(T a, T b, ReduceOp op) -> T {
  switch (op) {
    case ReduceOp::Sum: return a + b;
    case ReduceOp::Min: return std::min(a, b);
    case ReduceOp::Max: return std::max(a, b);
  }
  CHECK(false, "reduction {}", static_cast<int>(op));
  return a;
}

/// data = the slots combined, in order.
template <class T>
static auto CombineSlots(const std::vector<const std::byte*>& slots, std::byte* data, int64_t count, ReduceOp op)
    -> void {
  T* out = reinterpret_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    T value = reinterpret_cast<const T*>(slots[0])[i];
    for (size_t k = 1; k < slots.size(); ++k) {
      value = Combine(value, reinterpret_cast<const T*>(slots[k])[i], op);
    }
    out[i] = value;
  }
}

auto HostCommunicator::AllReduce(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype, ReduceOp op)
    -> Status {
  const Group& group = GroupOf(axes);
  const int64_t bytes = num_elements * SizeOf(dtype);
  CHECK(bytes <= MaxSmallBytes, "all_reduce of {} bytes", bytes);
  if (group.ranks.size() == 1) {
    return Meet(group);
  }
  const int turn = NextTurn(group);
  std::memcpy(group_->Slot(group, rank_, turn), data, static_cast<size_t>(bytes));
  RETURN_IF_ERROR(Meet(group));
  sources_.clear();
  for (const int64_t peer : group.ranks) {
    sources_.push_back(group_->Slot(group, peer, turn));
  }
  switch (dtype) {
    case DType::F32: CombineSlots<float>(sources_, data, num_elements, op); return Success{};
    case DType::F64: CombineSlots<double>(sources_, data, num_elements, op); return Success{};
    case DType::I64: CombineSlots<int64_t>(sources_, data, num_elements, op); return Success{};
    case DType::BF16:
    case DType::I32: break;
  }
  CHECK(false, "all_reduce of {}", ToText(dtype));
  return Success{};
}

auto HostCommunicator::Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status {
  const Group& group = GroupOf(axes);
  CHECK(bytes <= MaxSmallBytes, "broadcast of {} bytes", bytes);
  if (group.ranks.size() == 1) {
    return Meet(group);
  }
  std::byte* slot = group_->Slot(group, group.ranks[0], NextTurn(group));
  if (group.index == 0) {
    std::memcpy(slot, data, static_cast<size_t>(bytes));
  }
  RETURN_IF_ERROR(Meet(group));
  if (group.index != 0) {
    std::memcpy(data, slot, static_cast<size_t>(bytes));
  }
  return Success{};
}

auto HostCommunicator::GatherSmall(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  CHECK(bytes * size <= MaxSmallBytes, "gather of {} x {} bytes", size, bytes);
  if (size == 1) {
    std::memcpy(all, mine, static_cast<size_t>(bytes));
    return Meet(group);
  }
  const int turn = NextTurn(group);
  std::memcpy(group_->Slot(group, rank_, turn), mine, static_cast<size_t>(bytes));
  RETURN_IF_ERROR(Meet(group));
  for (int64_t i = 0; i < size; ++i) {
    std::memcpy(all + i * bytes, group_->Slot(group, group.ranks[static_cast<size_t>(i)], turn),
                static_cast<size_t>(bytes));
  }
  return Success{};
}

auto HostCommunicator::Barrier(AxisSet axes) -> Status { return Meet(GroupOf(axes)); }

}  // namespace shardc
