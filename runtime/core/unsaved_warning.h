// What a user of a long run without saves should know before a crash teaches it.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the bytes of state that a save writes, all ranks together: parameters, and moments if there are any. Headers
/// and manifest are not counted.
auto SavedBytes(const Plan& plan) -> Bytes;

/// Returns the warning of a run that has taken `since`, and saves only at its end or when it is stopped. Returns
/// nothing if the plan has saves on the way.
auto UnsavedWarning(const Plan& plan, Seconds since) -> std::optional<std::string>;

}  // namespace shardc
