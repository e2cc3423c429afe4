#include "runtime/kernels/cpu/device.h"

#include "compiler/base/check.h"
#include "compiler/base/processor.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

static auto BestDevice() -> std::string_view { return HasAvx512() ? Avx512Device : PortableDevice; }

auto ResolveDevice(Plan& plan) -> Status {
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) {
    return Fail(ExitCode::Environment, "this machine has neither AVX2 nor FMA, which every set of kernels uses");
  }
  if (plan.device == UndecidedDevice) {
    plan.device = BestDevice();
  }
  if (plan.device == Avx512Device && !HasAvx512()) {
    return Fail(ExitCode::Environment,
                "the plan is for {}, and this machine has no AVX-512 (F, BW, CD, DQ, VL); set "
                "run.device = \"cpu\" for what it has",
                plan.device);
  }
  if (plan.device != Avx512Device && plan.device != PortableDevice) {
    return Fail(ExitCode::RecipeRejected, "the plan is for the device {}; this program has {} and {}", plan.device,
                Avx512Device, PortableDevice);
  }
  return Success{};
}

auto LoopsOf(const Plan& plan) -> const Loops& {
  const std::string_view device = plan.device == UndecidedDevice ? BestDevice() : plan.device;
  CHECK(device == Avx512Device || device == PortableDevice, "no loops for device {}", device);
  return device == Avx512Device ? Avx512Loops : PortableLoops;
}

}  // namespace shardc
