// Which parameters are gathered together: the units of a plan and the flat vectors they lie in.
#pragma once

#include <vector>

#include "compiler/passes/pass.h"

namespace shardc {

/// Where the full value of a parameter lies.
struct ParameterHome {
  SubVectorId sub_vector;
  /// First element in the sub-vector.
  int64_t begin = 0;
};

/// Fills plan.units and plan.sub_vectors (segments and lengths, no values yet) by `shard.units`; the home of each
/// parameter, by id.
///
/// Preset "block": each block is a unit; the parameters outside the blocks form one unit before them and one after, by
/// where they are first read, or a single unit if one of them is read on both sides (a tied embedding).
auto MakeUnits(Plan& plan, const PassContext& context) -> std::vector<ParameterHome>;

}  // namespace shardc
