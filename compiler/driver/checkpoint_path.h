// The checkpoint that a command is given.
#pragma once

#include <string>

#include "compiler/base/error_or.h"

namespace shardc {

/// Returns the checkpoint that `path` names: itself, or the newest one if it is a run directory or a directory of
/// checkpoints. Errors: Usage or Checkpoint, where it is none.
auto FindCheckpoint(const std::string& path) -> ErrorOr<std::string>;

/// Returns the run directory that a checkpoint lies in, if that has a record of its seed; else an empty text.
auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string;

}  // namespace shardc
