// Agreement of all ranks on whether a step succeeded: what one rank alone knows, all are told, so that none continues
// or waits while another has given up.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Returns success if every rank's `mine` is a success; else the same error on all ranks, with the texts of the ranks
/// that failed. Collective.
auto AgreeOnStatus(RankControl& control, const Status& mine) -> Status;

/// Returns the status of rank 0 on all ranks; `mine` of the others is ignored. Collective.
auto FollowRankZero(RankControl& control, const Status& mine) -> Status;

/// Returns the text of rank 0 on all ranks; `mine` of the others is ignored. Collective.
auto TextOfRankZero(RankControl& control, const std::string& mine) -> ErrorOr<std::string>;

}  // namespace shardc
