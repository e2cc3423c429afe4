// restore_scalars: the state scalars out of the chosen checkpoint, which knows them by their roles.
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

auto Bind(const op::RestoreScalars&, Binder& binder) -> Kernel {
  return [&binder](const Moment&) -> Status {
    const Plan& plan = binder.plan();
    for (const ScalarId id : plan.scalars.ids()) {
      if (plan.scalars[id].kind == ScalarKind::State) {
        auto value = binder.reader().ReadScalar(StoredName(plan.scalars[id]));
        if (!value) {
          return value.error();
        }
        binder.scalars()[id] = *value;
      }
    }
    return Success{};
  };
}

}  // namespace shardc
