// Logits, and ids that are sampled by them: the forward of the evaluation, on ids that are given.
//
// Each sampled id is one forward over the last `seq` ids: there is no cache of keys and values, as this is for looking
// at what a model has learnt.
#pragma once

#include "compiler/base/error_or.h"
#include "runtime/core/bound_rank.h"

namespace shardc {

/// Writes the logits of the ids that the context asks about, or samples ids after them. Requires: the rank has loaded
/// its parameters. Collective.
auto Generate(BoundRank& rank) -> Status;

}  // namespace shardc
