// The limits of compiler/base/plan_limits.h and of the kernels for GPUs, asked of a plan that a pass made: a recipe can
// come close to them in ways that its checks do not foresee, and then it is the recipe that is too large, not the
// compiler that is wrong.
#pragma once

#include <optional>
#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

struct BrokenLimit {
  /// "the value logits [1, 8, 4294967296] has 137438953472 bytes".
  std::string what;
  int64_t most = 0;
  /// True if `what` is one parameter.
  bool is_of_parameter = false;
};

/// Returns the first limit that the plan breaks.
auto FindBrokenLimit(const Plan& plan) -> std::optional<BrokenLimit>;

}  // namespace shardc
