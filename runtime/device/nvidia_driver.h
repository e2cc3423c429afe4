// Facts that NVIDIA's driver shows of itself and of the GPUs of this machine, without CUDA. Source: its README,
// "The /proc interface".
#pragma once

#include <string>
#include <vector>

namespace shardc {

constexpr const char* NvidiaDriverFolder = "/proc/driver/nvidia";

/// Returns the version of the driver, "580.159.04"; empty without one.
auto NvidiaDriverVersion(const std::string& folder = NvidiaDriverFolder) -> std::string;

/// Returns the models of the GPUs, "NVIDIA H100 80GB HBM3", sorted; "unknown" for one that does not say.
auto NvidiaGpuModels(const std::string& folder = NvidiaDriverFolder) -> std::vector<std::string>;

}  // namespace shardc
