// Which set of inner loops a plan computes with.
#pragma once

#include "compiler/plan/plan.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

/// The loops of plan.device; for Device::Cpu the best that this machine can run. Requires: ResolveDevice let it pass.
auto LoopsOf(const Plan& plan) -> const Loops&;

}  // namespace shardc
