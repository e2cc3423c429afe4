// What people are told while processes of a launch wait for others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/units.h"
#include "compiler/cluster/place.h"

namespace shardc {

/// Returns "waiting for 1 of 2 hosts (node1): processes 2, 3 of 4 have not come for 6 s". `missing`: processes, in
/// order. `host_names`: by process; empty before all have met. Afterwards they "have not answered".
auto WaitingText(const LaunchPlace& place, const std::vector<int64_t>& missing,
                 const std::vector<std::string>& host_names, Seconds waited) -> std::string;

/// Returns "processes 2, 3 of 4 (node1) have not come within 600 s", for an error.
auto MissingText(const LaunchPlace& place, const std::vector<int64_t>& missing,
                 const std::vector<std::string>& host_names, Seconds waited) -> std::string;

}  // namespace shardc
