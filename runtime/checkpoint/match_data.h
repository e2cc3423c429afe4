// That the samples of a checkpoint's steps are those that a plan's run has in these steps.
#pragma once

#include <string>

#include "compiler/checkpoint/manifest.h"
#include "runtime/checkpoint/reader_options.h"

namespace shardc {

/// Compares the data of a run with those of its checkpoint. A run may be made longer or shorter, weights may change for
/// later steps, and a source without a sample in all completed steps may be added or dropped.
/// Errors: ExitCode::Checkpoint, naming what differs and how to start another run.
auto MatchData(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status;

/// Returns what the token files of a stage, which goes on in the middle of them, have otherwise than those of the
/// checkpoint; empty if nothing. Digests count where both sides have them.
auto OtherFiles(const ManifestData& there, const CheckpointReaderOptions& options) -> std::string;

}  // namespace shardc
