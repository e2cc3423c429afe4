// What connects one rank with its peers.
#pragma once

#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/control/control_block.h"
#include "runtime/control/rank_control.h"
#include "runtime/memory/arenas.h"

namespace shardc {

struct Links {
  std::unique_ptr<RankControl> control;
  std::unique_ptr<Communicator> communicator;
};

/// The one place that chooses by `plan.run.comm`. Called by the rank itself (after the fork), which joins its peers by
/// it. Requires: `block` and `arenas` outlive the links.
auto MakeLinks(const Plan& plan, int64_t rank, ControlBlock& block, const SharedArenas& arenas, WaitOptions waits)
    -> Links;

}  // namespace shardc
