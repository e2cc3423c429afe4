#include "runtime/comm/host_communicator.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/bfloat16.h"

namespace shardc {

HostCommunicator::HostCommunicator(std::shared_ptr<HostMember> member, PeerTable peers)
    : member_(std::move(member)), peers_(std::move(peers)) {
  sources_.reserve(peers_.size());
}

auto HostCommunicator::PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte* {
  const int64_t first = member_->block().ranks().begin;
  const auto base_of = [&](int64_t rank) {
    return peers_[static_cast<size_t>(rank - first)][static_cast<size_t>(span.arena)];
  };
  CHECK(base_of(peer) != nullptr && base_of(rank()) + span.offset == span.data,
        "a span at offset {} of arena {} that rank {} does not share", span.offset, ToText(span.arena), peer);
  return base_of(peer) + span.offset;
}

auto HostCommunicator::AllGather(Queue& /*queue*/, AxisSet axes, const CommSpan& shard, const CommSpan& full)
    -> Status {
  const Group& group = member_->GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  CHECK(full.bytes == shard.bytes * size, "all_gather of {} x {} bytes into {}", size, shard.bytes, full.bytes);
  RETURN_IF_ERROR(member_->Meet(group));
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
  Count(CollectiveKind::AllGather, axes, full.bytes, wire);
  return member_->Meet(group);
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

auto HostCommunicator::ReduceScatter(Queue& /*queue*/, AxisSet axes, const CommSpan& full, const CommSpan& shard,
                                     ReduceTypes types, bool accumulate) -> Status {
  const auto& [terms, sum] = types;
  const Group& group = member_->GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  const int64_t slice_bytes = shard.bytes / SizeOf(sum) * SizeOf(terms);
  CHECK(full.bytes == slice_bytes * size, "reduce_scatter of {} bytes into {} x {}", full.bytes, size, slice_bytes);
  sources_.clear();
  int64_t wire = 0;
  for (const int64_t peer : group.ranks) {
    const std::byte* base = peer == rank() ? full.data : PeerSpan(peer, full);
    sources_.push_back(base + group.index * slice_bytes);
    wire += peer == rank() ? 0 : slice_bytes;
  }
  RETURN_IF_ERROR(member_->Meet(group));
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
  Count(CollectiveKind::ReduceScatter, axes, full.bytes, wire);
  return member_->Meet(group);
}

auto HostCommunicator::AllReduce(Queue& /*queue*/, AxisSet axes, const CommSpan& span, DType dtype) -> Status {
  if (IsReadByPeers(span.arena)) {
    return AllReduceBySlices(axes, span, dtype);
  }
  const Group& group = member_->GroupOf(axes);
  Count(CollectiveKind::AllReduce, axes, span.bytes, span.bytes * (std::ssize(group.ranks) - 1));
  return member_->Sum(group, span.data, span.bytes / SizeOf(dtype), dtype);
}

/// Cuts a vector into as many slices as there are ranks, at cache lines where it is long enough.
static auto SliceBegin(int64_t bytes, int64_t index, int64_t num_slices) -> int64_t {
  constexpr int64_t Line = 64;
  return index == num_slices ? bytes : bytes / num_slices * index / Line * Line;
}

auto HostCommunicator::AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status {
  const Group& group = member_->GroupOf(axes);
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
    sources_.push_back(peer == rank() ? own.data : PeerSpan(peer, own));
    wire += peer == rank() ? 0 : own.bytes;
  }
  RETURN_IF_ERROR(member_->Meet(group));
  // Nobody reads this rank's terms of its own slice but itself: the sum may take their place.
  switch (dtype) {
    case DType::F32: SumSlices<float>(sources_, own, false); break;
    case DType::F64: SumSlices<double>(sources_, own, false); break;
    case DType::I64: SumSlices<int64_t>(sources_, own, false); break;
    case DType::BF16:
    case DType::I32: CHECK(false, "all_reduce of {}", ToText(dtype));
  }
  RETURN_IF_ERROR(member_->Meet(group));
  for (int64_t k = 1; k < size; ++k) {
    const int64_t index = (group.index + k) % size;
    const CommSpan slice = slice_of(index);
    std::memcpy(slice.data, PeerSpan(group.ranks[static_cast<size_t>(index)], slice), static_cast<size_t>(slice.bytes));
    wire += slice.bytes;
  }
  Count(CollectiveKind::AllReduce, axes, span.bytes, wire);
  return member_->Meet(group);
}

auto HostCommunicator::Exchange(Queue& /*queue*/, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all)
    -> Status {
  const Group& group = member_->GroupOf(axes);
  Count(CollectiveKind::Agree, axes, bytes, bytes * (std::ssize(group.ranks) - 1));
  return member_->Gather(group, mine, bytes, all);
}

}  // namespace shardc
