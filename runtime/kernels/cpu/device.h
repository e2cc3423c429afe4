// Which set of inner loops a plan computes with.
#pragma once

#include "compiler/plan/plan.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

constexpr std::string_view UndecidedDevice = "cpu";
constexpr std::string_view Avx512Device = "cpu-avx512";
constexpr std::string_view PortableDevice = "cpu-portable";

/// The loops of plan.device; for UndecidedDevice the best that this machine can run. Requires: ResolveDevice let it
/// pass.
auto LoopsOf(const Plan& plan) -> const Loops&;

}  // namespace shardc
