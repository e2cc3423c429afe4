// The version of the programs.
#pragma once

#include <string_view>

namespace shardc {

/// "0.1.0".
auto ProgramVersion() -> std::string_view;

}  // namespace shardc
