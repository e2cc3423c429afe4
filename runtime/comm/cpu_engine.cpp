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

auto CpuEngine::Gather(Queue& /*queue*/, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  CHECK(remote_ != nullptr, "a rank that no other host reaches");
  return remote_->Gather(axes, mine, bytes, all);
}

auto CpuEngine::AllToAll(Queue& /*queue*/, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                         int64_t bytes) -> Status {
  CHECK(remote_ != nullptr, "a rank that no other host reaches");
  return remote_->AllToAll(axes, to_each, stride, from_each, bytes);
}

}  // namespace shardc
