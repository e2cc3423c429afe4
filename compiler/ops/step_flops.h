// The matrix products of one step on one rank: what utilisation is measured by.
#pragma once

#include "compiler/ops/ops.h"

namespace shardc {

struct StepFlops {
  /// Forward and backward.
  Flops model;
  /// Those computed again.
  Flops recompute;

  auto all() const -> Flops { return model + recompute; }
};

auto StepFlopsOf(const Plan& plan) -> StepFlops;

}  // namespace shardc
