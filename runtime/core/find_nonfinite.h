// Where a step stopped being finite.
//
// Called after a step that control found not finite; nothing was updated, so that the step can be run once more:
//   1. the state: the first tensor that is not finite, by parameter and role
//   2. else the step's ops, in the order of the list, without those that change state or count. After each op its
//      results are looked at. All ranks run all ops, so that their collectives pair; the first such result over all
//      ranks is where it began. An op of the forward comes before all others: what it made is the cause of what follows
// An op with a result that is not finite had finite operands if it is the first: they are the state, or results before.
#pragma once

#include <string>

#include "runtime/core/execution.h"
#include "runtime/core/rank_binder.h"

namespace shardc {

struct NonFiniteCause {
  /// "the gradient of model.norm.weight is not finite", with the op or the element, and the rank.
  std::string text;
  /// The state itself is not finite: to leave updates out does not mend it.
  bool is_state = false;
};

/// Finds where a step stopped being finite. Collective over all ranks, which all get the same result. Cost: a step.
/// Requires: the data of that step, number `step`, is still there, and nothing was updated.
auto FindNonFiniteCause(RankBinder& binder, const Execution& execution, int64_t step) -> ErrorOr<NonFiniteCause>;

}  // namespace shardc
