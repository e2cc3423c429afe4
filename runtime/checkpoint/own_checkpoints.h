// How a run comes to own the directory of its checkpoints: before it looks for one, and for as long as it trains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/checkpoint/lease.h"
#include "runtime/control/rank_control.h"

namespace shardc {

struct CheckpointOwner {
  /// On rank 0; none on the others.
  std::unique_ptr<Lease> lease;
  /// On rank 0: leftovers that no save makes, or that could not be removed.
  std::vector<std::string> warnings;
};

/// Collective. Rank 0 takes the lease and clears what saves of this run left; the others wait with it, however long
/// that takes. `options`: what they say of messages is filled in here.
/// Errors: the same on all ranks, those of Lease::Acquire.
auto OwnCheckpoints(const std::string& dir, const std::string& run_id, RankControl& control, LeaseOptions options = {})
    -> ErrorOr<CheckpointOwner>;

}  // namespace shardc
