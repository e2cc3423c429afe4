#include "runtime/device/nvml.h"

#include <dlfcn.h>

#include <optional>

namespace shardc {

static auto Load() -> const NvmlApi* {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return nullptr;
  }
  const auto find = [library]<class Function>(Function*& function, const char* name) {
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(dlsym(library, name));
    }
  };
  static NvmlApi api;
  find(api.init, "nvmlInit_v2");
  find(api.count, "nvmlDeviceGetCount_v2");
  find(api.gpu_by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(api.gpu_by_address, "nvmlDeviceGetHandleByPciBusId_v2");
  find(api.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  // As drivers before 535 call it.
  find(api.clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(api.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(api.nvlink_state, "nvmlDeviceGetNvLinkState");
  find(api.field_values, "nvmlDeviceGetFieldValues");
  find(api.peer_status, "nvmlDeviceGetP2PStatus");
  find(api.most_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(api.most_pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(api.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  return Tells(api.init) ? &api : nullptr;
}

static std::optional<const NvmlApi*> table;

auto Nvml() -> const NvmlApi* {
  static const NvmlApi* const library = table ? nullptr : Load();
  return table.value_or(library);
}

auto SetNvml(const NvmlApi* api) -> void { table = api; }

}  // namespace shardc
