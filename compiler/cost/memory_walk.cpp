#include "compiler/cost/memory_walk.h"

#include <algorithm>
#include <numeric>

namespace shardc {

auto MemoryUse::total() const -> Bytes {
  Bytes sum;
  for (const Bytes bytes : by_category) {
    sum += bytes;
  }
  return sum;
}

auto PersistentUse(const Plan& plan) -> MemoryUse {
  MemoryUse use;
  for (const Buffer& buffer : plan.buffers) {
    if (IsPersistent(buffer.arena)) {
      use.of(buffer.category) += buffer.bytes;
    }
  }
  return use;
}

auto MemoryOverOps(const Plan& plan, SectionKind section) -> std::vector<MemoryUse> {
  std::vector<MemoryUse> over_ops;
  over_ops.reserve(plan.section(section).ops.size());
  MemoryUse now = PersistentUse(plan);
  WalkLives(
      plan, section, [&](BufferId id) { now.of(plan.buffers[id].category) += plan.buffers[id].bytes; },
      [&](size_t) { over_ops.push_back(now); },
      [&](BufferId id) { now.of(plan.buffers[id].category) -= plan.buffers[id].bytes; });
  return over_ops;
}

auto LeastReserved(const Plan& plan) -> Bytes {
  std::array<Bytes, NumArenas> most{};
  const auto arena_of = [&](BufferId id) { return static_cast<size_t>(plan.buffers[id].arena); };
  for (const BufferId id : plan.buffers.ids()) {
    most[arena_of(id)] += IsPersistent(plan.buffers[id].arena) ? plan.buffers[id].bytes : Bytes{};
  }
  for (int section = 0; section < NumSections; ++section) {
    std::array<Bytes, NumArenas> now{};
    WalkLives(
        plan, static_cast<SectionKind>(section),
        [&](BufferId id) {
          now[arena_of(id)] += plan.buffers[id].bytes;
          most[arena_of(id)] = std::max(most[arena_of(id)], now[arena_of(id)]);
        },
        [](size_t) {}, [&](BufferId id) { now[arena_of(id)] -= plan.buffers[id].bytes; });
  }
  return std::accumulate(most.begin(), most.end(), Bytes{});
}

}  // namespace shardc
