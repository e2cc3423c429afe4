// The checkpoint that a command is given.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the checkpoint that `path` names: the newest one if it is a run directory or a directory of checkpoints,
/// else itself.
auto CheckpointAt(const std::string& path) -> std::string;

/// Returns `given`, or if it is empty the newest checkpoint of the plan's run. Errors: Checkpoint if it has none.
auto CheckpointOrNewest(const std::string& given, const Plan& plan) -> ErrorOr<std::string>;

/// Returns the manifest of a checkpoint. Errors: Checkpoint, Environment.
auto ManifestAt(const std::string& checkpoint) -> ErrorOr<Manifest>;

}  // namespace shardc
