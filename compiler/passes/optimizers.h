// What the passes ask of the optimizer that a recipe names: the vectors that it keeps, and its op. Each optimizer's own
// file, compiler/passes/<name>.cpp, makes the op from the recipe's keys.
#pragma once

#include "compiler/ops/ops.h"
#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// One per row of schemas/optimizers.def: the op that updates a trained sub-vector, with gradients that are multiplied
/// by the number that `factor` holds.
#define OPTIMIZER(Name, name, doc)                                                                               \
  auto Name##Update(const OptimizerSection& optimizer, const Plan& plan, SubVectorId sub_vector, ValueId factor) \
      ->OpBody;
#include "schemas/optimizers.def"

/// Returns the op of the plan's optimizer.
auto UpdateOp(const OptimizerSection& optimizer, const Plan& plan, SubVectorId sub_vector, ValueId factor) -> OpBody;

/// Returns what the plan's optimizer keeps of trained parameters, with the settings of the recipe.
auto KeptRoles(const OptimizerSection& optimizer, const Plan& plan) -> std::vector<StateRole>;

}  // namespace shardc
