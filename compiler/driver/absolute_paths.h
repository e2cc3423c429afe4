// Plans travel: what a plan names holds wherever the plan is run from.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Paths of a recipe hold from where `shardc` was called; those of a plan on record, or in a file, hold from anywhere.
auto MakePathsAbsolute(Plan& plan) -> void;

}  // namespace shardc
