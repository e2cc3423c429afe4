// What is alive in a section, op by op: the one walk that the peak, the chart of a step and the rings are taken from.
#pragma once

#include <array>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

struct MemoryUse {
  std::array<Bytes, NumCategories> by_category{};

  auto total() const -> Bytes;
  auto of(Category category) -> Bytes& { return by_category[static_cast<size_t>(category)]; }
  auto of(Category category) const -> Bytes { return by_category[static_cast<size_t>(category)]; }
};

/// Returns the memory that outlives each section.
auto PersistentUse(const Plan& plan) -> MemoryUse;

/// Returns the memory that is alive at each op of a section.
auto MemoryOverOps(const Plan& plan, SectionKind section) -> std::vector<MemoryUse>;

/// Returns the sum over the arenas of the most that is alive at once in each: less than this no packing reserves.
auto LeastReserved(const Plan& plan) -> Bytes;

/// Calls born(buffer) where a buffer of a section that does not outlive it is touched first, at(index) at each op with
/// all that it touches alive, and released(buffer) after it.
template <class Born, class At, class Released>
auto WalkLives(const Plan& plan, SectionKind kind, const Born& born, const At& at, const Released& released) -> void {
  const std::vector<Op>& ops = plan.section(kind).ops;
  std::vector<bool> is_alive(static_cast<size_t>(plan.buffers.size()));
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const Access& access : AccessesOf(ops[i].body)) {
      const BufferId id = plan.values[access.value].buffer;
      if (!is_alive[static_cast<size_t>(id.index)] && !IsPersistent(plan.buffers[id].arena)) {
        is_alive[static_cast<size_t>(id.index)] = true;
        born(id);
      }
    }
    at(i);
    if (const BufferId dead = ReleasedBufferOf(ops[i].body);
        dead.valid() && is_alive[static_cast<size_t>(dead.index)]) {
      is_alive[static_cast<size_t>(dead.index)] = false;
      released(dead);
    }
  }
}

}  // namespace shardc
