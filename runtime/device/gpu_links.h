// Links between the GPUs of this host, as the driver tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shardc {

struct GpuLink {
  /// NVLinks that the GPU has, and those of them that are up.
  int64_t nvlinks = 0;
  int64_t nvlinks_up = 0;
  /// MB/s of each in one direction; 0 if it is not known.
  int64_t nvlink_mb_per_s = 0;
  /// PCIe: the best that GPU and slot can do together, and the lanes that are in use. 0 if it is not known.
  int64_t pcie_generation = 0;
  int64_t pcie_lanes = 0;
  int64_t pcie_lanes_up = 0;
};

struct GpuLinks {
  std::vector<GpuLink> gpus;
  /// Pairs of GPUs: all, those that reach each other's memory, and those that are connected by NVLink.
  int64_t pairs = 0;
  int64_t pairs_that_reach = 0;
  int64_t pairs_by_nvlink = 0;
};

/// Returns the links of all GPUs of this host; nothing without NVML.
auto MeasureGpuLinks() -> std::optional<GpuLinks>;

}  // namespace shardc
