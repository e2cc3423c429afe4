// A process that does not come to the meeting of its launch, because its variables are wrong or it has been told to
// stop, tells the others.
#pragma once

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/cluster/place.h"

namespace shardc {

/// How long process 0 stays for those who have not come yet: they may compile the recipe first.
constexpr Seconds StayForTheLate{5};

/// Reports an error to the other processes of the launch. `point`: what this process knows of the launch. Opens the
/// store for a while if this is process 0 and it has not done so: nobody else would. Returns when the others can read
/// `why` in the store, or after seconds.
auto TellLaunch(const LaunchPlace& point, const Error& why, bool has_opened_store = false) -> void;

}  // namespace shardc
