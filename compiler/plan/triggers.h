// Counts of the firings of a plan's triggers.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns how often the triggers of a section fire from the end of a step (from 1) to the end of the run. A trigger of
/// the end does not fire again after the last step's.
auto NumFires(const Plan& plan, SectionKind section, int64_t step) -> int64_t;

}  // namespace shardc
