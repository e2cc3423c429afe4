#include "compiler/passes/optimizers.h"

namespace shardc {

auto KeptRoles([[maybe_unused]] const OptimizerSection& optimizer) -> std::vector<StateRole> {
  std::vector<StateRole> roles;
#define ALWAYS true
#define UNLESS_ZERO(key) *optimizer.key != 0
#define STATE(Name, Role, role, kept, doc) \
  if (kept) {                              \
    roles.push_back(StateRole::Role);      \
  }
#include "schemas/optimizers.def"
#undef ALWAYS
#undef UNLESS_ZERO
  return roles;
}

}  // namespace shardc
