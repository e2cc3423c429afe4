// Whether all hosts of a launch share a folder, and can write there.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "runtime/meet/meeting.h"

namespace shardc {

struct SharedFolder {
  /// For messages: "run directory".
  std::string what;
  /// Made where missing.
  std::string path;
  /// How long a file that one host has renamed may take to show on the others: caches of network file systems.
  Seconds longest_visible;
};

/// Returns how long hosts look for a file: `longest`, or half of the time that processes wait for each other if that is
/// shorter. The error has to reach the others before they give up.
auto LongestVisible(const Meeting& meeting, Seconds longest) -> Seconds;

/// Checks that all hosts see one folder. The first process of each host writes a file there, syncs it, renames it and
/// reads it, and then every process reads that of the first host. All processes call it, in a constant number of calls
/// to the store for each. The files are removed. `seen`: how long the file of the first host took to show; unset if it
/// did not.
/// Errors, the same in all processes: ExitCode::Environment with the processes that cannot write, or do not see the
/// file.
auto ProbeSharedFolder(Meeting& meeting, const SharedFolder& folder, std::optional<Seconds>& seen) -> Status;

}  // namespace shardc
