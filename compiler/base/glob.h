// The patterns of `match`: globs over full parameter names.
#pragma once

#include <string_view>

namespace shardc {

/// Returns true if `pattern` matches all of `name`: `*` stands for any characters (dots and none at all included), `?`
/// for one, everything else for itself. Cost: at most pattern length * name length.
auto GlobMatches(std::string_view pattern, std::string_view name) -> bool;

/// Returns true if the pattern has no wildcard: such a pattern beats one that has.
auto IsExactName(std::string_view pattern) -> bool;

}  // namespace shardc
