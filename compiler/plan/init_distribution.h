// The distribution that the elements of a parameter begin with.
#pragma once

#include <optional>

#include "compiler/expr/expr.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Nothing where the init rule is a formula.
/// Requires: the rule reads.
auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution>;

}  // namespace shardc
