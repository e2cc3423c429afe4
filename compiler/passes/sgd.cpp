// The update op of SGD.
#include "compiler/passes/optimizers.h"

namespace shardc {

auto SgdUpdate(const OptimizerSection& optimizer, const Plan& plan, SubVectorId id, ValueId factor) -> OpBody {
  const SubVector& sub_vector = plan.sub_vectors[id];
  return op::Sgd{.gradient = sub_vector.gradient,
                 .factor = factor,
                 .parameter = sub_vector.shard,
                 .momentum_buffer = StateOf(sub_vector, StateRole::MomentumBuffer),
                 .copy = sub_vector.compute_copy,
                 .sub_vector = id,
                 .lr = plan.ScalarOf(ScalarRole::Lr),
                 .momentum = *optimizer.momentum,
                 .nesterov = *optimizer.nesterov};
}

}  // namespace shardc
