// That a checkpoint is one for a plan: of its model, its data, and with all that is asked of it.
#pragma once

#include <string_view>

#include "compiler/checkpoint/manifest.h"
#include "runtime/checkpoint/reader_options.h"

namespace shardc {

/// For the purpose that the options name. `digest`: by which a plan knows the seed. Errors: ExitCode::Checkpoint,
/// naming what differs: "checkpoint of another model: layers is 4 there, 6 here".
auto MatchPlan(const Manifest& manifest, std::string_view digest, const CheckpointReaderOptions& options) -> Status;

}  // namespace shardc
