// restore_scalars: the state scalars out of the chosen checkpoint, which knows them by their roles, and the losses that
// the next ones are judged by.
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::RestoreScalars&, Binder& binder) -> Kernel {
  return [&binder](const Moment&) -> Status {
    const Plan& plan = binder.plan();
    for (const ScalarId id : plan.scalars.ids()) {
      if (plan.scalars[id].kind == ScalarKind::State) {
        ASSIGN_OR_RETURN(auto value, binder.reader().ReadScalar(StoredName(plan.scalars[id])));
        binder.scalars()[id] = value;
      }
    }
    if (plan.FindScalar(ScalarRole::Spike).valid()) {
      binder.scalars().losses().Restore(binder.reader().manifest().recent_losses, plan.run.spike_window);
    }
    return Success{};
  };
}

}  // namespace shardc::host
