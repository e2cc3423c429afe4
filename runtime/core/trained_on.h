// An evaluation on tokens that the run has trained on gives a loss that is too low.
#pragma once

#include <string>

#include "compiler/checkpoint/manifest.h"
#include "runtime/data/token_reader.h"

namespace shardc {

/// Returns a line for people if the evaluation of `plan` takes tokens that the run of a checkpoint did not hold out;
/// empty if it takes none. `there`: what the checkpoint says of the run's data. `tokens`: those of the plan.
auto TrainedOnText(const ManifestData& there, const Plan& plan, const TokenReader& tokens) -> std::string;

}  // namespace shardc
