// What `shardc --version` prints.
#pragma once

#include <string>

namespace shardc {

/// "shardc 0.1.0", or one JSON object with the compiler and the plan format besides.
auto VersionText(bool as_json) -> std::string;

}  // namespace shardc
