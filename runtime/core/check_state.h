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
  /// Index in the logical tensor, row-major, of the first such element that this rank holds.
  int64_t element = 0;
  double value = 0;
};

/// Finds the first tensor that is not finite, by parameter, then by role; copies come after all of these. Padding is
/// not looked at. Collective over all ranks, which all get the same result. Cost: one pass over the elements.
auto FindBadState(Binder& binder, std::span<const StateRole> roles) -> ErrorOr<std::optional<BadState>>;

/// Returns "ROLE of model.norm.weight is not finite: element 3 is nan, on rank 1".
auto ToText(const Plan& plan, const BadState& bad) -> std::string;

/// Checks the state that was read from the checkpoint at `path`. Collective.
/// Errors: Checkpoint, the same on all ranks, naming tensor, element and path.
auto CheckLoadedState(Binder& binder, std::span<const StateRole> roles, const std::string& path) -> Status;

/// Checks the parameters of a first start. Collective.
/// Errors, the same on all ranks: Checkpoint if the parameter comes from the plan's seed, else RecipeRejected.
auto CheckFirstState(Binder& binder) -> Status;

}  // namespace shardc
