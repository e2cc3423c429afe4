// Ranks see that what their bits depend on, beside the plan, is the same on all of them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "compiler/base/error_or.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Compares the versions of all ranks, by name, with those of rank 0. Returns a line for people, the same on all ranks,
/// if only the card or its driver differs; empty if nothing does. Collective over all ranks. Errors: Environment, the
/// same on all ranks, if a library differs.
auto AgreeOnVersions(RankControl& control, const std::map<std::string, std::string>& versions) -> ErrorOr<std::string>;

}  // namespace shardc
