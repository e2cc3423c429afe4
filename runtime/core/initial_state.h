// What a first start drew: summed over the ranks, held to what the rules say, and put on record.
#pragma once

#include "compiler/plan/init_record.h"
#include "compiler/plan/plan.h"
#include "runtime/control/rank_control.h"
#include "runtime/init/drawn.h"

namespace shardc {

/// What all ranks drew of each parameter. Where several hold the same elements the first one's count.
struct DrawnByAll {
  IdVector<ParameterId, Drawn> parameters;
  /// With those of all.
  int64_t elements = 0;
};

/// Collective over all ranks. Sums in rank order: the same bits on all ranks, and again on the same mesh.
auto SumDrawn(RankControl& control, const Plan& plan, const IdVector<ParameterId, Drawn>& mine) -> ErrorOr<DrawnByAll>;

/// Mean and standard deviation of each parameter that was drawn, not loaded.
/// Errors: InternalFault, naming the parameter, where its elements were not drawn once each, or where mean or deviation
///   is farther from that of its rule than chance allows: 8 standard errors for many elements. Of formulas nothing is
///   known.
auto RealisedInit(const Plan& plan, const DrawnByAll& drawn) -> ErrorOr<InitRecord>;

}  // namespace shardc
