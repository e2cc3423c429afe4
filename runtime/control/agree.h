// Agreement of all ranks on whether a step succeeded: what one rank alone knows, all are told, so that none continues
// or waits while another has given up.
#pragma once

#include "compiler/base/error_or.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Collective. Success where every rank's `mine` is; else, on all ranks the same error, with the failing ranks' texts.
auto AgreeOnStatus(RankControl& control, const Status& mine) -> Status;

/// Collective. What rank 0 has to say, on all ranks; the others' `mine` does not count.
auto FollowRankZero(RankControl& control, const Status& mine) -> Status;

}  // namespace shardc
