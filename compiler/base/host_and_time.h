// The name of this host and the time by its clock, for records.
#pragma once

#include <string>

namespace shardc {

/// Returns "2026-11-23T00:10:07Z", by this host's clock.
auto UtcNow() -> std::string;
/// Returns the name of this host; an empty text if the system does not tell it.
auto HostName() -> std::string;

}  // namespace shardc
