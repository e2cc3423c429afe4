// A tensor of the state as one number: what ranks agree on when they find one that is not finite.
#pragma once

#include <utility>

#include "compiler/plan/plan.h"

namespace shardc {

/// Numbers tensors of state in the order of parameters, and those of one parameter in the order of roles.
inline auto StateIndex(ParameterId parameter, StateRole role) -> int64_t {
  return int64_t{parameter.index} * static_cast<int64_t>(StateRoles.size()) + static_cast<int64_t>(role);
}
/// Returns the tensor that has this number.
inline auto StateAt(int64_t index) -> std::pair<ParameterId, StateRole> {
  constexpr auto Roles = static_cast<int64_t>(StateRoles.size());
  return {ParameterId{static_cast<int32_t>(index / Roles)}, static_cast<StateRole>(index % Roles)};
}

}  // namespace shardc
