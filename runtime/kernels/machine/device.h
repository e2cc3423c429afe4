// Which set of inner loops a plan computes with.
#pragma once

#include "compiler/plan/plan.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

/// Returns the loops of plan.device: the best that this machine can run for Device::Cpu, and for a device of another
/// family, where kernels of the host use them. Requires: ResolveDevice let it pass.
auto LoopsOf(const Plan& plan) -> const Loops&;

namespace cpu {

/// Decides the processor as ResolveDevice does, for all that a host itself computes.
auto ResolveProcessor(Plan& plan) -> Status;

}  // namespace cpu
}  // namespace shardc
