// The first tensor of the state that is not finite, over all ranks.
//
// Looked for after a load, before any step is taken, and where a step was not finite. Before a save the plan's own
// check_finite ops look. What is gathered in another type than it is kept in is looked at too: a number that f32 holds
// may be infinite in bf16.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/kernels/kernel.h"

namespace shardc {

struct BadState {
  ParameterId parameter;
  StateRole role = StateRole::Parameter;
  /// The state is finite, and its copy in the type that is computed in is not.
  bool is_copy = false;
  /// The least rank that holds one.
  int64_t rank = 0;
  /// Of the logical tensor, row-major: the first that this rank holds.
  int64_t element = 0;
  double value = 0;
};

/// Collective over all ranks, which all get the same. The first by parameter, then by role; copies after all of these.
/// Padding does not count. Cost: one pass over what is looked at.
auto FindBadState(Binder& binder, std::span<const StateRole> roles) -> ErrorOr<std::optional<BadState>>;

/// "ROLE of model.norm.weight is not finite: element 3 is nan, on rank 1".
auto ToText(const Plan& plan, const BadState& bad) -> std::string;

/// Collective. Of the state that was read from the checkpoint at `path`.
/// Errors: Checkpoint, the same on all ranks, naming tensor, element and path.
auto CheckLoadedState(Binder& binder, std::span<const StateRole> roles, const std::string& path) -> Status;

/// Collective. Of the parameters of a first start.
/// Errors, the same on all ranks: Checkpoint where the parameter comes from the plan's seed, else RecipeRejected.
auto CheckFirstState(Binder& binder) -> Status;

}  // namespace shardc
