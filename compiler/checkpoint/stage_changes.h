// Tells what a stage does otherwise than the run that it continues, key by key, each with what follows from it.
#pragma once

#include <string>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns texts such as "model.seq 1024 -> 4096: longer positions than before were not trained"; none if nothing
/// differs, or one of both has no recipe. A default that is spelled out changes nothing.
auto StageChanges(const Manifest& manifest, const Plan& plan) -> std::vector<std::string>;

/// Returns these texts of the checkpoint that the plan continues; none if it continues nothing, or the checkpoint that
/// the plan was made with is no longer there.
auto ReadStageChanges(const Plan& plan) -> std::vector<std::string>;

}  // namespace shardc
