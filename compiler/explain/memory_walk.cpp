#include "compiler/explain/memory_walk.h"

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

}  // namespace shardc
