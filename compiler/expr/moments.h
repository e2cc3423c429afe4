// Mean and standard deviation of what an init rule draws, by analysis: nothing is drawn.
#pragma once

#include "compiler/expr/expr.h"

namespace shardc {

struct Moments {
  double mean = 0;
  double std = 0;
};

/// Computes the moments of the distribution in exact arithmetic, before its values are rounded to f32; for a cut normal
/// distribution, those of what the cut leaves. Relative error 1e-12.
/// Requires: arguments in the kind's domain.
auto MomentsOf(const Distribution& distribution) -> Moments;

}  // namespace shardc
