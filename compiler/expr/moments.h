// Mean and standard deviation of what an init rule draws, by analysis: nothing is drawn.
#pragma once

#include "compiler/expr/expr.h"

namespace shardc {

struct Moments {
  double mean = 0;
  double std = 0;
};

/// Those of the distribution in exact arithmetic, before its values are rounded to f32; of a cut normal distribution
/// what is left by the cut. Relative error 1e-12.
/// Requires: arguments in the kind's domain.
auto MomentsOf(const Distribution& distribution) -> Moments;

}  // namespace shardc
