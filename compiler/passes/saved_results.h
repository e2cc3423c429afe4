// Which results of a block's forward a policy of [recompute] keeps, though it computes the rest of the block again.
#pragma once

#include "compiler/model/model_family.h"
#include "compiler/passes/pass.h"

namespace shardc {

/// Returns the results of forward ops that a block keeps, in their order. The list is empty for "full".
///   "selective": what `save` names; a projection is known by the parameter that it reads. Where its sums are partial
///     over tp, what is kept is what they are made to.
///   "torchtitan-sac": attention, the first, third, ... matrix product of the block, and what reduce-scatters give.
/// `specs`: the parameters as the family declared them, in the order of the plan's. Requires: a checked recipe.
/// Source: pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py, _custom_policy: of the products,
///   counted from 1, the even ones are computed again.
auto SavedResults(const Plan& plan, const ParameterSpecs& specs, const std::vector<const Op*>& block,
                  const RecomputeSection& recompute) -> std::vector<ValueId>;

}  // namespace shardc
