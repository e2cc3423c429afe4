// Ranks that hold the same elements hold the same bits, or no step is taken.
#pragma once

#include <span>

#include "runtime/control/rank_control.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Collective over all ranks. Compares digests of what each rank owns of each parameter, in these roles, among the
/// ranks that hold the same of it: along `replicate`, and along `tp` what is not cut over it. Padding does not count.
/// Errors: InternalFault, the same on all ranks: parameter, ranks and digests of the first difference of each group.
/// Cost: one pass over what is compared; nothing where no rank holds what another does.
auto CompareReplicas(Binder& binder, std::span<const StateRole> roles) -> Status;

/// Collective over all ranks. The digest of the rotary tables that the section `constants` made, 32 hex digits; empty
/// where the plan has none. Errors: InternalFault, the same on all ranks, where two ranks have different tables.
auto CompareRotaryTables(Binder& binder) -> ErrorOr<std::string>;

}  // namespace shardc
