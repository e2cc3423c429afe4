#include "runtime/kernels/machine/device.h"

#include "compiler/base/check.h"
#include "compiler/base/devices.h"
#include "compiler/base/processor.h"

namespace shardc {

/// Returns the device itself if it is decided and of a CPU, else the best CPU that this machine has.
static auto Decided(Device device) -> Device {
  switch (device) {
    case Device::Cuda:
    case Device::CudaSm90:
    case Device::Cpu: return HasAvx512() ? Device::CpuAvx512 : Device::CpuPortable;
    case Device::CpuAvx512:
    case Device::CpuPortable: return device;
  }
  CHECK(false, "device {}", static_cast<int>(device));
}

auto cpu::ResolveProcessor(Plan& plan) -> Status {
  FAIL_IF(__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0, ExitCode::Environment,
          "this machine has neither AVX2 nor FMA, which every set of kernels uses");
  if (FactsOf(plan.device).family != DeviceFamily::Cpu) {
    return Success{};
  }
  plan.device = Decided(plan.device);
  FAIL_IF(plan.device == Device::CpuAvx512 && !HasAvx512(), ExitCode::Environment,
          "the plan is for {}, and this machine has no AVX-512 (F, BW, CD, DQ, VL); set "
          "run.device = \"cpu\" for what it has",
          ToText(plan.device));
  return Success{};
}

auto LoopsOf(const Plan& plan) -> const Loops& {
  return Decided(plan.device) == Device::CpuAvx512 ? Avx512Loops : PortableLoops;
}

}  // namespace shardc
