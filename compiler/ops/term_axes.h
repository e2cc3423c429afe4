// Along which axes what an op writes is a rank's term of a sum: what follows from the op, whatever the plan says.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the axes along which ranks have different elements of the gradient of a sub-vector.
inline auto SquaresAxes(const Mesh& mesh, const SubVector& sub_vector) -> AxisSet {
  return Spread(mesh, sub_vector.axes | sub_vector.cut);
}

}  // namespace shardc
