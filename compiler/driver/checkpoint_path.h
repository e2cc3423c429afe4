// The checkpoint that a command is given.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the checkpoint that `path` names: the newest one if it is a run directory or a directory of checkpoints,
/// else itself.
auto CheckpointAt(const std::string& path) -> std::string;

/// Returns `given`, or if it is empty the newest checkpoint of the plan's run. Errors: Checkpoint if it has none.
auto CheckpointOrNewest(const std::string& given, const Plan& plan) -> ErrorOr<std::string>;

/// Checks that it is one. Errors: Checkpoint, Environment.
auto CheckIsCheckpoint(const std::string& checkpoint) -> Status;

/// Returns the run directory that a checkpoint lies in, if that has a record of its seed; else an empty text.
auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string;

}  // namespace shardc
