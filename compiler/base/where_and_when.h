// Where and when a record was made, in the words of records.
#pragma once

#include <string>

namespace shardc {

/// "2026-11-23T00:10:07Z", by this host's clock.
auto UtcNow() -> std::string;
/// Empty where the system does not tell.
auto HostName() -> std::string;

}  // namespace shardc
