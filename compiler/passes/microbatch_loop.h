// The loop over the microbatches of a step.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Puts the ops of a microbatch in a loop, if there are several: gradient slices and the loss are summed in values that
/// the loop carries. With `reduces_last` whole gradients are summed there instead, and reduced after the loop, each
/// sub-vector's in its type of `reduce_types`. Requires: `section` has the ops of one microbatch, with its
/// reduce-scatters unless `reduces_last`; sub-vectors name the gradient that these leave.
auto LoopOverMicrobatches(Plan& plan, Section& section, bool reduces_last, const std::vector<DType>& reduce_types)
    -> void;

}  // namespace shardc
