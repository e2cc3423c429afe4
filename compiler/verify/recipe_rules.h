// The lines `recipe` of rules over parameters and units, against these: the groups of the optimizer with their factors,
// frozen parameters, types by unit, and the rules of initial values.
#pragma once

#include "compiler/keys/plan_keys.h"
#include "compiler/verify/internal.h"

namespace shardc {

auto VerifyRecipeRules(const Plan& plan, const PlanKeys& keys, Findings& findings) -> void;

}  // namespace shardc
