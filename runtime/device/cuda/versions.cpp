#include "runtime/device/cuda/versions.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "runtime/device/nvidia_driver.h"

namespace shardc {

auto CudaVersions() -> std::map<std::string, std::string> {
  std::map<std::string, std::string> versions;
  int card = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&card) == cudaSuccess && cudaGetDeviceProperties(&properties, card) == cudaSuccess) {
    versions["card"] = properties.name;
  }
  if (int cudart = 0; cudaRuntimeGetVersion(&cudart) == cudaSuccess) {
    versions["cudart"] = fmt::format("{}.{}", cudart / 1000, cudart % 1000 / 10);
  }
  if (const std::string driver = NvidiaDriverVersion(); !driver.empty()) {
    versions["driver"] = driver;
  }
  return versions;
}

auto LibraryVersionText(size_t version) -> std::string {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace shardc
