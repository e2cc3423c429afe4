// The ways on from a checkpoint that a run may not resume, for the ends of messages.
#pragma once

#include <string>

#include "compiler/checkpoint/manifest.h"
#include "runtime/checkpoint/reader_options.h"

namespace shardc {

/// Returns the options with which the command that was refused starts another run, beside this
/// one, in a folder that does not exist yet.
auto OptionsOfAnotherRun(const CheckpointReaderOptions& refused) -> std::string;

/// Returns the way to go on from a checkpoint in another run, as the end of a sentence: with its moments, if the
/// optimizer is the same, else from its parameters alone.
auto GoOnInAnotherRun(const Manifest& manifest, const CheckpointReaderOptions& options) -> std::string;

/// Returns true if the parameters of the checkpoint are those of the plan, with its shapes.
auto HasParametersOf(const Manifest& manifest, const Plan& plan) -> bool;

}  // namespace shardc
