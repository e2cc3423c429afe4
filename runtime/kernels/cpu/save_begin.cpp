// save_begin: opens a checkpoint with the state scalars as they are now.
#include <map>

#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

auto Bind(const op::SaveBegin&, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  CheckpointWriter& writer = binder.writer();
  const ScalarTable& scalars = binder.scalars();
  return [&](const Moment&) -> Status {
    std::map<std::string, double> state;
    for (const ScalarId id : plan.scalars.ids()) {
      if (plan.scalars[id].kind == ScalarKind::State) {
        state[plan.scalars[id].name] = scalars[id];
      }
    }
    return writer.Begin(state);
  };
}

}  // namespace shardc
