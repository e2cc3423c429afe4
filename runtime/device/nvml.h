// The functions of NVML that are called here, as a table: those of libnvidia-ml.so.1, which comes with the driver and
// is loaded when it is first asked for, or those of a test. Nothing links the library, and without it nothing is told
// of GPUs. Declarations are our own. Source: NVML API Reference Guide.
#pragma once

#include <cstdint>

/// A GPU, as the library knows it.
struct nvmlDevice_st;

namespace shardc {

struct NvmlApi {
  using Gpu = nvmlDevice_st*;

  static constexpr int Success = 0;
  /// Links of a GPU at most.
  static constexpr unsigned MaxNvLinks = 18;
  /// Fields of values: MB/s of each link that is up, in one direction.
  static constexpr unsigned NvLinkSpeed = 90;
  /// Abilities of two GPUs that NvmlGpuP2PCapsIndex names. The status is 0 if they have one.
  static constexpr int ReadPeer = 0;
  static constexpr int NvLinkPeer = 2;
  /// Why clocks are lower than asked for: NvmlClocksEventReason.
  static constexpr uint64_t SwPowerCap = 0x4;
  static constexpr uint64_t HwSlowdown = 0x8;
  static constexpr uint64_t SwThermalSlowdown = 0x20;
  static constexpr uint64_t HwThermalSlowdown = 0x40;
  static constexpr uint64_t HwPowerBrake = 0x80;

  /// nvmlFieldValue_t.
  struct FieldValue {
    unsigned field = 0;
    unsigned scope = 0;
    int64_t timestamp = 0;
    int64_t latency_us = 0;
    int type = 0;
    int result = 0;
    /// A number without a sign, of 4 or 8 bytes, if it was 0 before the call.
    uint64_t value = 0;
  };

  // Each returns Success, or why it cannot tell. Null if the library does not have it.
  int (*init)() = nullptr;
  int (*count)(unsigned* count) = nullptr;
  int (*gpu_by_index)(unsigned index, Gpu* gpu) = nullptr;
  int (*gpu_by_address)(const char* pci_address, Gpu* gpu) = nullptr;
  int (*clock_reasons)(Gpu gpu, unsigned long long* reasons) = nullptr;
  int (*power_limit)(Gpu gpu, unsigned* milliwatts) = nullptr;
  int (*nvlink_state)(Gpu gpu, unsigned link, int* is_up) = nullptr;
  int (*field_values)(Gpu gpu, int count, FieldValue* values) = nullptr;
  int (*peer_status)(Gpu gpu, Gpu peer, int what, int* status) = nullptr;
  int (*most_pcie_generation)(Gpu gpu, unsigned* generation) = nullptr;
  int (*most_pcie_width)(Gpu gpu, unsigned* lanes) = nullptr;
  int (*pcie_width)(Gpu gpu, unsigned* lanes) = nullptr;
};

/// Calls a function of the table. Returns true if it is there and told what it was asked for.
template <class Function, class... Arguments>
auto Tells(Function* function, Arguments... arguments) -> bool {
  return function != nullptr && function(arguments...) == NvmlApi::Success;
}

/// Returns the table, initialised; null without the library, or if its driver does not answer.
auto Nvml() -> const NvmlApi*;
/// Puts another table in the place of the library's, for tests. `api`: outlives its use; null: no library.
auto SetNvml(const NvmlApi* api) -> void;

}  // namespace shardc
