#include "runtime/control/position.h"

#include "compiler/base/plan_limits.h"
#include "compiler/plan/op_place.h"
#include "compiler/plan/plan.h"

namespace shardc {

static constexpr int OpBits = 20;
static constexpr int SectionBits = 3;
static_assert(MostOps <= (int64_t{1} << OpBits) && NumSections <= (1 << SectionBits));
static_assert(MostCount < (int64_t{1} << (64 - OpBits - SectionBits)));

auto PackPosition(const Position& position) -> uint64_t {
  // From the high bits: step + 1, section, op.
  return (static_cast<uint64_t>(position.step + 1) << (OpBits + SectionBits)) |
         (static_cast<uint64_t>(position.section) << OpBits) | static_cast<uint64_t>(position.op_index);
}

auto UnpackPosition(uint64_t word) -> Position {
  return {.step = static_cast<int64_t>(word >> (OpBits + SectionBits)) - 1,
          .section = static_cast<SectionKind>((word >> OpBits) & ((1U << SectionBits) - 1)),
          .op_index = static_cast<int64_t>(word & ((1U << OpBits) - 1))};
}

auto PositionText(const Plan* plan, const Position& position) -> std::string {
  const std::string place = plan == nullptr ? "" : OpPlaceText(*plan, position.section, position.op_index);
  return fmt::format("op {} of step {}{}", position.op_index, position.step,
                     place.empty() ? "" : fmt::format(" ({})", place));
}

}  // namespace shardc
