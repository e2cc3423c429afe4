// What a communicator counts of its own calls.
#include "runtime/comm/communicator.h"

namespace shardc {

auto Communicator::Count(CollectiveKind kind, AxisSet axes, const Traffic& traffic) -> void {
  Traffic& sum = traffic_.At(kind, axes);
  sum.calls += traffic.calls;
  sum.payload += traffic.payload;
  sum.wire += traffic.wire;
}

auto Communicator::CountAs(CollectiveKind kind, AxisSet axes, int64_t payload, const Traffic& before) -> void {
  Count(kind, axes, {.calls = 1, .payload = payload, .wire = small_.wire - before.wire});
  small_ = before;
}

auto Communicator::CountSmall(int64_t payload, int64_t wire) -> void {
  small_.calls += 1;
  small_.payload += payload;
  small_.wire += wire;
}

auto Communicator::Exchange(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  const Traffic before = small_;
  RETURN_IF_ERROR(GatherSmall(axes, mine, bytes, all));
  CountAs(CollectiveKind::Agree, axes, bytes, before);
  return Success{};
}

}  // namespace shardc
