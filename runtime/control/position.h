// Where a stream of a rank is in its plan, in one word, so that a rank stores it with one instruction.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/plan/types.h"

namespace shardc {

struct Plan;

struct Position {
  int64_t step = 0;
  SectionKind section = SectionKind::Step;
  /// In the list of the section's ops.
  int64_t op_index = 0;

  friend auto operator==(const Position&, const Position&) -> bool = default;
};

/// Returns the position in one word, which is never 0: 0 stands for no op. Requires: sizes within
/// compiler/base/plan_limits.h.
auto PackPosition(const Position& position) -> uint64_t;
auto UnpackPosition(uint64_t word) -> Position;

/// Returns the position as text: "op 415 of step 12 (matmul of layer 3 in section step; from recipe line 12,
/// model.ffn)"; without a plan (null), only its numbers.
auto PositionText(const Plan* plan, const Position& position) -> std::string;

}  // namespace shardc
