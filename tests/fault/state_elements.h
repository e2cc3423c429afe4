// Single elements of a run's state, by tensor, role and place: in the memory of a rank, and in a checkpoint's files.
#pragma once

#include <limits>
#include <string>

#include "compiler/plan/plan.h"
#include "runtime/core/runner.h"

namespace shardc {

constexpr float NaN = std::numeric_limits<float>::quiet_NaN();
constexpr float Inf = std::numeric_limits<float>::infinity();

struct StateElement {
  std::string parameter;
  StateRole role = StateRole::Parameter;
  /// Of the logical tensor, flat and row-major.
  int64_t element = 0;
};

/// Writes it, rounded to the type that it is kept in, where this rank owns it, and into a parameter's copy in another
/// type; true if it does.
auto SetInMemory(const Plan& plan, RankRunner& runner, int64_t rank, const StateElement& at, float value) -> bool;

/// Writes it into a checkpoint, and makes the digests of file and manifest right. The checkpoint has to be sound.
auto SetInCheckpoint(const std::string& checkpoint, const StateElement& at, float value) -> void;

}  // namespace shardc
