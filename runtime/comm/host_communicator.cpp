#include "runtime/comm/host_communicator.h"

#include <algorithm>
#include <cstring>

#include "compiler/plan/exchange.h"

namespace shardc {

HostCommunicator::HostCommunicator(std::shared_ptr<HostMember> member, PeerTable peers, const Mesh& mesh)
    : member_(std::move(member)), peers_(std::move(peers)), mesh_(mesh) {
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

auto HostCommunicator::PerHost(AxisSet axes) const -> int64_t {
  return std::min(mesh_.LocalSize(axes), std::ssize(GroupOf(axes).ranks));
}

auto HostCommunicator::AllGather(Queue& /*queue*/, AxisSet axes, const CommSpan& shard, const CommSpan& full,
                                 const CommSpan& /*scratch*/) -> Status {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  CHECK(full.bytes == shard.bytes * size, "all_gather of {} x {} bytes into {}", size, shard.bytes, full.bytes);
  RETURN_IF_ERROR(member_->Meet(group));
  // Where the full vector is one for all ranks of a host, each of them writes its own slice, and those of the ranks
  // that have its number on the other hosts: this is all that the others take from it.
  const bool is_one_for_all = full.arena == Arena::Gathered;
  const int64_t stride = is_one_for_all ? PerHost(axes) : 1;
  int64_t wire = is_one_for_all ? shard.bytes * (size - 1) : 0;
  // Beginning with the next rank, so that not all read one rank's memory at a time, and ending with the own slice.
  for (int64_t k = stride; k <= size; k += stride) {
    wire += k < size && !is_one_for_all ? shard.bytes : 0;
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

auto HostCommunicator::FoldPeers(AxisSet axes, const CommSpan& terms, std::byte* out, ReduceTypes types,
                                 bool accumulate, int64_t& taken) -> void {
  sources_.clear();
  for (const int64_t peer : GroupOf(axes).ranks) {
    sources_.push_back(peer == rank() ? terms.data : PeerSpan(peer, terms));
    taken += peer == rank() ? 0 : terms.bytes;
  }
  Fold(sources_, static_cast<size_t>(PerHost(axes)), out, terms.bytes / SizeOf(types.terms), types, accumulate);
}

auto HostCommunicator::ReduceScatter(Queue& /*queue*/, AxisSet axes, const CommSpan& full, const CommSpan& shard,
                                     const CommSpan& /*scratch*/, ReduceTypes types, bool accumulate) -> Status {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  const int64_t slice_bytes = shard.bytes / SizeOf(types.sum) * SizeOf(types.terms);
  CHECK(full.bytes == slice_bytes * size, "reduce_scatter of {} bytes into {} x {}", full.bytes, size, slice_bytes);
  RETURN_IF_ERROR(member_->Meet(group));
  int64_t wire = 0;
  FoldPeers(axes, PartOf(full, group.index * slice_bytes, slice_bytes), shard.data, types, accumulate, wire);
  Count(CollectiveKind::ReduceScatter, axes, full.bytes, wire);
  return member_->Meet(group);
}

auto HostCommunicator::AllReduce(Queue& /*queue*/, AxisSet axes, const CommSpan& span, const CommSpan& /*scratch*/,
                                 DType dtype) -> Status {
  if (IsReadByPeers(span.arena)) {
    return AllReduceBySlices(axes, span, dtype);
  }
  const Group& group = GroupOf(axes);
  Count(CollectiveKind::AllReduce, axes, span.bytes, span.bytes * (std::ssize(group.ranks) - 1));
  return member_->Sum(group, span.data, span.bytes / SizeOf(dtype), dtype, PerHost(axes));
}

auto HostCommunicator::SliceOf(const CommSpan& span, int64_t index, int64_t num_ranks) -> CommSpan {
  const int64_t begin = SliceBegin(span.bytes, index, num_ranks);
  return PartOf(span, begin, SliceBegin(span.bytes, index + 1, num_ranks) - begin);
}

auto HostCommunicator::CopySlices(AxisSet axes, const CommSpan& span, int64_t& taken) -> void {
  const Group& group = GroupOf(axes);
  const auto size = static_cast<int64_t>(group.ranks.size());
  for (int64_t k = 1; k < size; ++k) {
    const int64_t index = (group.index + k) % size;
    const CommSpan slice = SliceOf(span, index, size);
    std::memcpy(slice.data, PeerSpan(group.ranks[static_cast<size_t>(index)], slice), static_cast<size_t>(slice.bytes));
    taken += slice.bytes;
  }
}

auto HostCommunicator::AllReduceBySlices(AxisSet axes, const CommSpan& span, DType dtype) -> Status {
  const Group& group = GroupOf(axes);
  const CommSpan own = SliceOf(span, group.index, std::ssize(group.ranks));
  int64_t wire = 0;
  RETURN_IF_ERROR(member_->Meet(group));
  // Nobody reads this rank's terms of its own slice but itself: the sum may take their place.
  FoldPeers(axes, own, own.data, {.terms = dtype, .sum = dtype}, false, wire);
  RETURN_IF_ERROR(member_->Meet(group));
  CopySlices(axes, span, wire);
  Count(CollectiveKind::AllReduce, axes, span.bytes, wire);
  return member_->Meet(group);
}

auto HostCommunicator::Exchange(Queue& /*queue*/, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all)
    -> Status {
  const Group& group = GroupOf(axes);
  Count(CollectiveKind::Agree, axes, bytes, bytes * (std::ssize(group.ranks) - 1));
  return member_->Gather(group, mine, bytes, all);
}

}  // namespace shardc
