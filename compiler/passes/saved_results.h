// Which results of a block's forward a policy of [recompute] keeps, though it computes the rest of the block again.
#pragma once

#include "compiler/passes/pass.h"

namespace shardc {

/// Results of forward ops of block `layer`, in the order of the ops. None for "full".
///   "selective": what `save` names; a projection is known by the parameter that it reads.
///   "torchtitan-sac": attention, and the first, third, ... matrix product of the block. Their reduce-scatters inside a
///     block come with tensor parallelism only.
/// Requires: a checked recipe.
/// Source: pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py, _custom_policy: of the products,
///   counted from 1, the even ones are computed again.
auto SavedResults(const Plan& plan, const std::vector<Op>& ops, int32_t layer, const RecomputeSection& recompute)
    -> std::vector<ValueId>;

}  // namespace shardc
