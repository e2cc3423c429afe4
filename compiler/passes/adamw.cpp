// The update op of AdamW.
#include "compiler/passes/optimizers.h"

namespace shardc {

auto AdamwUpdate(const OptimizerSection& optimizer, const Plan& plan, SubVectorId id, ValueId factor) -> OpBody {
  const SubVector& sub_vector = plan.sub_vectors[id];
  return op::Adamw{.gradient = sub_vector.gradient,
                   .factor = factor,
                   .parameter = sub_vector.shard,
                   .exp_avg = StateOf(sub_vector, StateRole::ExpAvg),
                   .exp_avg_sq = StateOf(sub_vector, StateRole::ExpAvgSq),
                   .copy = sub_vector.compute_copy,
                   .sub_vector = id,
                   .lr = plan.ScalarOf(ScalarRole::Lr),
                   .updates = plan.ScalarOf(ScalarRole::Updates),
                   .beta1 = (*optimizer.betas)[0],
                   .beta2 = (*optimizer.betas)[1],
                   .eps = *optimizer.eps};
}

}  // namespace shardc
