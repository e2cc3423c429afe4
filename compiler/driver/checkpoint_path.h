// The checkpoint that a command is given.
#pragma once

#include <string>

#include "compiler/base/error_or.h"

namespace shardc {

/// Returns the checkpoint that `path` names: the newest one if it is a run directory or a directory of checkpoints,
/// else itself.
auto CheckpointAt(const std::string& path) -> std::string;

/// Checks that it is one. Errors: Checkpoint, Environment.
auto CheckIsCheckpoint(const std::string& checkpoint) -> Status;

/// Returns the run directory that a checkpoint lies in, if that has a record of its seed; else an empty text.
auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string;

}  // namespace shardc
