// Plans in parts: each fused op replaced by the ops that it is made of. So what a plan computes is judged on plain ops
// alone, and a fused op needs no VJP and no rules of its own for placements, tokens and sizes.
#pragma once

#include <array>
#include <vector>

#include "compiler/ops/ops.h"

namespace shardc {

/// Takes the parts of a fused op, in the order in which they run.
class PartsContext {
 public:
  virtual ~PartsContext() = default;
  /// Returns a value that only the parts know, with memory of its own, placed as `like` is.
  virtual auto New(ValueId like, const ValueType& type) -> ValueId = 0;
  /// Appends a part of the op's phase.
  virtual auto Emit(OpBody body) -> void = 0;
  /// Appends a part of another phase than the op's.
  virtual auto Emit(OpBody body, Phase phase) -> void = 0;
  virtual auto plan() const -> const Plan& = 0;
};

struct PlanInParts {
  Plan plan;
  /// Indices of the ops that the ops of `plan` are parts of, by section.
  std::array<std::vector<size_t>, NumSections> origins;
};

auto HasFusedOps(const Plan& plan) -> bool;
/// Returns the plan with each fused op in its parts. Values of the plan keep their ids; those that only parts have come
/// after them.
auto InParts(const Plan& plan) -> PlanInParts;

}  // namespace shardc
