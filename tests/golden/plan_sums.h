// What a plan costs, added up a second time and by other means than compiler/cost: from the sizes of values, the
// formulas of the collectives, and lifetimes instead of a running set.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

struct CommunicationSum {
  int64_t count = 0;
  int64_t payload_bytes = 0;
  int64_t wire_bytes = 0;

  friend auto operator==(const CommunicationSum&, const CommunicationSum&) -> bool = default;
};

/// By op, bits of the axes, and dtype.
using CommunicationSums = std::map<std::tuple<OpKind, uint8_t, DType>, CommunicationSum>;

auto SumStepCommunication(const Plan& plan) -> CommunicationSums;

/// Matrix products of a step on one rank: in forward and backward; in recomputation.
struct FlopSums {
  int64_t model = 0;
  int64_t recompute = 0;
};
auto SumStepFlops(const Plan& plan) -> FlopSums;

/// Bytes alive at an op, persistent arenas included.
struct AliveBytes {
  std::array<int64_t, NumCategories> by_category{};

  auto at(Category category) const -> int64_t { return by_category[static_cast<size_t>(category)]; }
  auto total() const -> int64_t;
};
/// One per op of a section.
auto SweepMemory(const Plan& plan, SectionKind kind) -> std::vector<AliveBytes>;

/// Where the last byte of an arena's buffers ends.
auto EndOfArena(const Plan& plan, Arena arena) -> int64_t;

}  // namespace shardc
