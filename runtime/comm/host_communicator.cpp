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
  const bool is_one_for_all = full.arena == Arena::Gathered;
  // Where the full vector is one for all, this rank's slice is all that it gives, to each of them.
  int64_t wire = is_one_for_all ? shard.bytes * (size - 1) : 0;
  for (int64_t k = is_one_for_all ? size : 1; k <= size; ++k) {
    wire += k < size ? shard.bytes : 0;
    const int64_t index = (group.index + k) % size;
    std::byte* to = full.data + index * shard.bytes;
    const std::byte* from = k == size ? shard.data : PeerSpan(group.ranks[static_cast<size_t>(index)], shard);
    if (to != from) {
      std::memcpy(to, from, static_cast<size_t>(shard.bytes));
    }
  }
  Count(CollectiveKind::AllGather, axes, {.calls = 1, .payload = full.bytes, .wire = wire});
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
  int64_t wire = 0;
  for (const int64_t peer : group.ranks) {
    const std::byte* base = peer == rank_ ? full.data : PeerSpan(peer, full);
    sources_.push_back(base + group.index * slice_bytes);
    wire += peer == rank_ ? 0 : slice_bytes;
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
  Count(CollectiveKind::ReduceScatter, axes, {.calls = 1, .payload = full.bytes, .wire = wire});
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

auto HostCommunicator::AllReduce(AxisSet axes, const CommSpan& span, DType dtype) -> Status {
  if (IsReadByPeers(span.arena)) {
    return AllReduceBySlices(axes, span, dtype);
  }
  const Traffic before = small_traffic();
  const int64_t piece = MaxSmallBytes / SizeOf(dtype) * SizeOf(dtype);
  for (int64_t begin = 0; begin < span.bytes; begin += piece) {
    const int64_t bytes = std::min(piece, span.bytes - begin);
    RETURN_IF_ERROR(AllReduce(axes, span.data + begin, bytes / SizeOf(dtype), dtype, ReduceOp::Sum));
  }
  CountAs(CollectiveKind::AllReduce, axes, span.bytes, before);
  return Success{};
}

/// Cuts a vector into as many slices as there are ranks, at cache lines where it is long enough.
static auto SliceBegin(int64_t bytes, int64_t index, int64_t num_slices) -> int64_t {
  constexpr int64_t Line = 64;
  return index == num_slices ? bytes : bytes / num_slices * index / Line * Line;
}

auto HostCommunicator::AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  const auto slice_of = [&](int64_t index) {
    const int64_t begin = SliceBegin(span.bytes, index, size);
    return CommSpan{.data = span.data + begin,
                    .bytes = SliceBegin(span.bytes, index + 1, size) - begin,
                    .arena = span.arena,
                    .offset = span.offset + begin};
  };
  const CommSpan own = slice_of(group.index);
  sources_.clear();
  int64_t wire = 0;
  for (const int64_t peer : group.ranks) {
    sources_.push_back(peer == rank_ ? own.data : PeerSpan(peer, own));
    wire += peer == rank_ ? 0 : own.bytes;
  }
  RETURN_IF_ERROR(Meet(group));
  // Nobody reads this rank's terms of its own slice but itself: the sum may take their place.
  switch (dtype) {
    case DType::F32: SumSlices<float>(sources_, own, false); break;
    case DType::F64: SumSlices<double>(sources_, own, false); break;
    case DType::I64: SumSlices<int64_t>(sources_, own, false); break;
    case DType::BF16:
    case DType::I32: CHECK(false, "all_reduce of {}", ToText(dtype));
  }
  RETURN_IF_ERROR(Meet(group));
  for (int64_t k = 1; k < size; ++k) {
    const int64_t index = (group.index + k) % size;
    const CommSpan slice = slice_of(index);
    std::memcpy(slice.data, PeerSpan(group.ranks[static_cast<size_t>(index)], slice), static_cast<size_t>(slice.bytes));
    wire += slice.bytes;
  }
  Count(CollectiveKind::AllReduce, axes, {.calls = 1, .payload = span.bytes, .wire = wire});
  return Meet(group);
}

auto HostCommunicator::AllReduce(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype, ReduceOp op)
    -> Status {
  const Group& group = GroupOf(axes);
  const int64_t bytes = num_elements * SizeOf(dtype);
  CHECK(bytes <= MaxSmallBytes, "all_reduce of {} bytes", bytes);
  CountSmall(bytes, bytes * (std::ssize(group.ranks) - 1));
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
  CountSmall(bytes, group.index == 0 ? bytes * (std::ssize(group.ranks) - 1) : 0);
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
  CountSmall(bytes, bytes * (size - 1));
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
