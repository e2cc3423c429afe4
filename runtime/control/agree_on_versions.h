// Ranks see that what their bits depend on, beside the plan, is the same on all of them.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/versions.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Compares the versions of all ranks, by name, with those of rank 0. Returns a line for people, the same on all ranks,
/// if only the card or its driver differs; empty if nothing does. Collective over all ranks. Errors: Environment, the
/// same on all ranks, if a library differs.
auto AgreeOnVersions(RankControl& control, const Versions& versions) -> ErrorOr<std::string>;

}  // namespace shardc
