#include "runtime/checkpoint/own_checkpoints.h"

#include <utility>

#include "runtime/checkpoint/leftovers.h"
#include "runtime/control/agree.h"

namespace shardc {

/// Returns true for the status of a rank 0 that waits: its peers do not take it for a rank that stands still.
static auto MeansWaiting(const Status& status) -> bool {
  return !status.ok() && status.error().kind == ErrorKind::Waits;
}

auto OwnCheckpoints(const std::string& dir, const std::string& run_id, RankControl& control, LeaseOptions options)
    -> ErrorOr<CheckpointOwner> {
  if (control.rank() != 0) {
    Status told = Success{};
    do {
      told = FollowRankZero(control, Success{});
    } while (MeansWaiting(told));
    return told ? ErrorOr<CheckpointOwner>(CheckpointOwner{}) : told.error();
  }
  options.what = "checkpoint directory";
  options.remedy = "set `checkpoint.dir` to another folder";
  options.while_waiting = [&control, asked = std::move(options.while_waiting)]() -> Status {
    if (asked) {
      RETURN_IF_ERROR(asked());
    }
    const Status told = FollowRankZero(control, Error{ExitCode::Environment, "", ErrorKind::Waits});
    return MeansWaiting(told) ? Status(Success{}) : told;
  };
  Fs& fs = *options.fs;
  auto lease = Lease::Acquire(dir, run_id, std::move(options));
  RETURN_IF_ERROR(FollowRankZero(control, lease ? Status(Success{}) : Status(lease.error())));
  return CheckpointOwner{.lease = *std::move(lease), .warnings = RemoveAbandoned(dir, run_id, fs)};
}

}  // namespace shardc
