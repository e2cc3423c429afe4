// Which parameters are gathered together: the units of a plan and the flat vectors they lie in.
#pragma once

#include <vector>

#include "compiler/passes/choose_units.h"

namespace shardc {

/// The place of the full value of a parameter.
struct ParameterHome {
  SubVectorId sub_vector;
  /// First element in the sub-vector.
  int64_t begin = 0;
};

/// Fills plan.units and plan.sub_vectors (segments and lengths, no values yet) as `choices` say; the home of each
/// parameter, by id.
auto MakeUnits(Plan& plan, const std::vector<UnitChoice>& choices) -> std::vector<ParameterHome>;

}  // namespace shardc
