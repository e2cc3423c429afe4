// Ranks that hold the same elements hold the same bits, or no step is taken.
#pragma once

#include <span>

#include "runtime/control/rank_control.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Compares digests of what each rank owns of each parameter, in these roles, among the ranks that hold the same
/// elements: along `replicate`, and along `tp` for parameters that are not cut over it. Padding is not compared.
/// Collective over all ranks.
/// Errors: InternalFault, the same on all ranks: parameter, ranks and digests of the first difference of each group.
/// Cost: one pass over what is compared; nothing if each rank holds elements of its own.
auto CompareReplicas(Binder& binder, std::span<const StateRole> roles) -> Status;

/// Returns the digest of the rotary tables that the section `constants` made, 32 hex digits; empty if the plan has no
/// such table. Collective over all ranks. Errors: InternalFault, the same on all ranks, if two ranks have different
/// tables.
auto CompareRotaryTables(Binder& binder) -> ErrorOr<std::string>;

}  // namespace shardc
