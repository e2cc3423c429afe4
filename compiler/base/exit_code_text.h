// What the exit codes of the programs mean, for their help.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardc {

/// Returns each exit code and what it means.
auto ExitCodeTexts() -> std::vector<std::pair<int, std::string_view>>;
/// A line per exit code, with a title above them.
auto ExitCodeTable() -> std::string;

}  // namespace shardc
