// Judges if a recipe is accepted with more ranks, as far as its plan tells.
#pragma once

#include <string_view>

#include "compiler/keys/plan_keys.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns true for the key of an axis, "mesh.dp" or "mesh.tp", along which the recipe may not have twice as many
/// ranks.
auto NeedsRefusedRanks(const Plan& plan, const PlanKeys& keys, std::string_view key) -> bool;

}  // namespace shardc
