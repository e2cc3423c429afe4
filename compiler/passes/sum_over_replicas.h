// Sums of gradient slices over the ranks that own the same slice.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Appends the sums over the replicas, and over tp for what each of its ranks has whole: the slices of these lie side
/// by side, for one all_reduce of all units. Sub-vectors name the sums then.
auto SumOverReplicas(Plan& plan, Section& section) -> void;

}  // namespace shardc
