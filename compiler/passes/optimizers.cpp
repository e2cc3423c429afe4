#include "compiler/passes/optimizers.h"

#include <array>

namespace shardc {

auto UpdateOp(const OptimizerSection& optimizer, const Plan& plan, SubVectorId sub_vector, ValueId factor) -> OpBody {
  static constexpr std::array makers{
#define OPTIMIZER(Name, name, doc) &Name##Update,
#include "schemas/optimizers.def"
  };
  return makers[static_cast<size_t>(plan.run.optimizer)](optimizer, plan, sub_vector, factor);
}

auto KeptRoles([[maybe_unused]] const OptimizerSection& optimizer, const Plan& plan) -> std::vector<StateRole> {
  std::vector<StateRole> roles;
#define ALWAYS true
#define UNLESS_ZERO(key) *optimizer.key != 0
#define STATE(Name, Role, role, kept, doc)               \
  if (plan.run.optimizer == Optimizer::Name && (kept)) { \
    roles.push_back(StateRole::Role);                    \
  }
#include "schemas/optimizers.def"
  return roles;
}

}  // namespace shardc
