// What the exit codes of the programs mean, for their help.
#pragma once

#include <string>

namespace shardc {

/// A line per exit code, with a title above them.
auto ExitCodeTable() -> std::string;

}  // namespace shardc
