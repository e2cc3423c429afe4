// What a first start drew: summed over the ranks, held to what the rules say, and put on record.
#pragma once

#include "compiler/plan/init_record.h"
#include "compiler/plan/plan.h"
#include "runtime/control/rank_control.h"
#include "runtime/init/drawn.h"

namespace shardc {

/// Sums over the elements of each parameter that all ranks drew. If several ranks hold the same elements, those of the
/// first one count.
struct DrawnByAll {
  IdVector<ParameterId, Drawn> parameters;
  /// Elements of all ranks, by rules that read nothing of a seed, and by rules that do.
  int64_t elements = 0;
  int64_t read_elements = 0;
};

/// Sums what the ranks drew, in rank order: the bits are the same on all ranks, and again on the same mesh. Collective
/// over all ranks.
auto SumDrawn(RankControl& control, const Plan& plan, const IdVector<ParameterId, Drawn>& mine) -> ErrorOr<DrawnByAll>;

/// Returns mean and standard deviation of each parameter that was drawn, not loaded.
/// Errors: InternalFault, naming the parameter, if its elements were not drawn once each, or if mean or deviation is
/// farther from that of its rule than chance allows: 8 standard errors for many elements. Parameters of formulas are
/// not judged.
auto RealisedInit(const Plan& plan, const DrawnByAll& drawn) -> ErrorOr<InitRecord>;

}  // namespace shardc
