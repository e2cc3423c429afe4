// save_begin: opens a checkpoint with the state scalars as they are now, if all that will be saved is finite. The ranks
// agree on that before anything is written, so that the checkpoints that are there stay as they are.
#include <algorithm>
#include <map>

#include "compiler/plan/state_index.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/control/rank_control.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::SaveBegin& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  CheckpointWriter& writer = binder.writer();
  const ScalarTable& scalars = binder.scalars();
  RankControl& control = binder.control();
  return [&, bad = CheckedView<int64_t>(binder, op.bad),
          memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    ASSIGN_OR_RETURN(const auto own_bad, memory.First<int64_t>(bad, moment));
    ASSIGN_OR_RETURN(const auto all, control.GatherValues(AxisSet::All(), own_bad));
    const auto least = std::ranges::min_element(all);
    if (*least < StateIndex(ParameterId{plan.parameters.size()}, StateRole{})) {
      const auto [parameter, role] = StateAt(*least);
      return Fail(ExitCode::Diverged, "{} is not finite on rank {}; nothing was written, older checkpoints stand",
                  StateName(plan.parameters[parameter].name, role), least - all.begin());
    }
    std::map<std::string, double> state;
    for (const ScalarId id : plan.scalars.ids()) {
      if (plan.scalars[id].kind == ScalarKind::State) {
        state[StoredName(plan.scalars[id])] = scalars[id];
      }
    }
    return writer.Begin(static_cast<int64_t>(scalars[plan.ScalarOf(ScalarRole::Step)]), state,
                        scalars.losses().losses());
  };
}

}  // namespace shardc::host
