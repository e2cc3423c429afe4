// Slurm's short form of a list of host names, `n[1-3,07],m5`, as its variables of nodes hold it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// Returns the names that `text` stands for, in its order. A number keeps the zeros before it, and a range the width of
/// its first number: `n[08-10]` is n08, n09, n10. Of several brackets in a name the last one runs fastest.
/// Errors: ExitCode::Environment if `text` is not such a list, stands for more than 65,536 names, or has a name of more
/// than 255 characters or 8 brackets.
/// Cost: at most 65,536 names are ever held, whatever `text` says.
auto ExpandHostList(std::string_view text) -> ErrorOr<std::vector<std::string>>;

}  // namespace shardc
