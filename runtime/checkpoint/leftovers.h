// What saves that were cut short, or strangers, left under temporary names. Only the owner of the directory clears it.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// The first of NAME-1, NAME-2, ... that nothing bears.
auto FreeNameAt(const Descriptor& parent, const std::string& name) -> ErrorOr<std::string>;

/// Frees a temporary name. A directory of files is removed. A link, a FIFO or a file is removed and not followed. A
/// directory that holds directories is no save of ours: it is moved aside as it is.
/// Returns what was removed or moved that no save makes; "" for the usual. Errors: what could not be removed.
auto ClearTemporary(const Descriptor& parent, const std::string& name) -> ErrorOr<std::string>;

/// Clears all temporary names of `run_id`. Requires: this process owns the directory, and no save is under way.
/// Returns what a user should hear of, also what could not be removed.
auto RemoveAbandoned(const std::string& dir, const std::string& run_id, Fs& fs = PosixFs()) -> std::vector<std::string>;

}  // namespace shardc
