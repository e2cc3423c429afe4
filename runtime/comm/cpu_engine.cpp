#include "runtime/comm/cpu_engine.h"

namespace shardc {

auto CpuEngine::Peer(int64_t rank, const CommSpan& span) const -> std::byte* {
  const int64_t own = member().rank();
  if (rank == own) {
    return span.data;
  }
  std::byte* const base = BaseOf(rank, span.arena);
  CHECK(base != nullptr && BaseOf(own, span.arena) + span.offset == span.data,
        "a span at offset {} of arena {} that rank {} does not share", span.offset, ToText(span.arena), rank);
  return base + span.offset;
}

template <class Function>
auto CpuEngine::WaitForMembers(AxisSet axes, const Function& exchange) -> Status {
  const auto& [group, ranks] = remote_[axes.bits];
  CHECK(group != nullptr, "no group over {} was made", ToText(axes));
  const int64_t next = ranks[static_cast<size_t>((group->index() + 1) % group->size())];
  member().block().SetWaitsFor(member().rank(), next, group->size() - 1);
  Status status = exchange(*group);
  member().block().SetWaitsFor(member().rank(), 0, 0);
  return status;
}

auto CpuEngine::Gather(Queue& /*queue*/, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  return WaitForMembers(axes, [&](PeerGroup& group) { return group.AllGather(mine, bytes, all); });
}

auto CpuEngine::AllToAll(Queue& /*queue*/, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                         int64_t bytes) -> Status {
  return WaitForMembers(axes, [&](PeerGroup& group) { return group.AllToAll(to_each, stride, from_each, bytes); });
}

}  // namespace shardc
