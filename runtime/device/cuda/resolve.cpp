// Finds the GPU of this machine. A process that calls CUDA cannot fork ranks that do, so a child looks, tells, and
// ends.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "compiler/base/child_output.h"
#include "runtime/device/cuda/cuda_device.h"

namespace shardc {

/// Returns the version of CUDA that `cudaDriverGetVersion` gives as a number.
static auto VersionText(int version) -> std::string {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

static auto VisibleText() -> std::string {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format("; CUDA_VISIBLE_DEVICES={} hides all others", visible);
}

/// Returns the compute mode of a GPU: which processes may use it.
static auto ModeOf(int number) -> cudaComputeMode {
  int mode = cudaComputeModeDefault;
  cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, number);
  return static_cast<cudaComputeMode>(mode);
}

auto FaultOfMode(int number, cudaError_t taken) -> std::string {
  constexpr std::string_view Remedy =
      "`nvidia-smi -c DEFAULT` opens it to all processes, and CUDA_VISIBLE_DEVICES can name another card";
  const cudaComputeMode mode = ModeOf(number);
  if (mode == cudaComputeModeProhibited) {
    return fmt::format("GPU {} is in prohibited mode, in which no process can use it; {}", number, Remedy);
  }
  if (taken != cudaErrorDevicesUnavailable) {
    return "";
  }
  return mode == cudaComputeModeDefault
             ? fmt::format(
                   "GPU {} is busy or unavailable (cudaErrorDevicesUnavailable); CUDA_VISIBLE_DEVICES can name "
                   "another card",
                   number)
             : fmt::format("GPU {} is in exclusive-process mode, and another process has it; {}", number, Remedy);
}

static auto UnusableText(int number, cudaError_t code) -> std::string {
  return fmt::format("GPU {} of this machine cannot be used: {} ({}){}", number, cudaGetErrorString(code),
                     cudaGetErrorName(code), VisibleText());
}

auto FaultOfKind(int number) -> std::string {
  cudaDeviceProp properties{};
  if (const cudaError_t code = cudaGetDeviceProperties(&properties, number); code != cudaSuccess) {
    return UnusableText(number, code);
  }
  if (std::string_view(properties.name).find(" MIG ") != std::string_view::npos) {
    return fmt::format("GPU {} is a part of one, {}; plans are for whole GPUs: turn MIG off{}", number, properties.name,
                       VisibleText());
  }
  if (properties.major != 9 || properties.minor != 0) {
    return fmt::format(
        "GPU {} is {}, of compute capability {}.{}, and the kernels of this program are for 9.0 (H100, H200){}", number,
        properties.name, properties.major, properties.minor, VisibleText());
  }
  return "";
}

/// Returns the fault of this machine's GPUs; empty if they can be used.
static auto FaultOfGpus() -> std::string {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "this machine has no GPU: no driver of NVIDIA is loaded; set run.device = \"cpu\" to run on its processor";
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    return fmt::format("the driver of this machine is for CUDA {}, and this program needs {}; install a newer driver",
                       VersionText(driver), VersionText(CUDART_VERSION));
  }
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && count == 0)) {
    return fmt::format("this process sees no GPU{}", VisibleText());
  }
  if (counted != cudaSuccess) {
    return UnusableText(0, counted);
  }
  if (std::string fault = FaultOfKind(0); !fault.empty()) {
    return fault;
  }
  // To take a GPU costs half a second, and shows only in these modes whether another process has it.
  return FaultOfMode(0, ModeOf(0) == cudaComputeModeDefault ? cudaSuccess : cudaSetDevice(0));
}

/// Runs FaultOfGpus in a child, and returns its result. The child calls the libraries too: one that lacks a part of
/// itself ends the process that calls it.
static auto LookAtGpus(void (*call_libraries)()) -> ErrorOr<std::string> {
  const auto output = ReadChild([call_libraries](int pipe) {
    const std::string fault = FaultOfGpus();
    if (fault.empty()) {
      call_libraries();
    }
    // A short text fits a pipe at once.
    return write(pipe, fault.data(), fault.size()) == static_cast<ssize_t>(fault.size()) ? 0 : 1;
  });
  if (!output) {
    return output.error();
  }
  FAIL_IF(!output->ended_well, ExitCode::Environment,
          "the process that looks at the GPUs of this machine did not end well: is a library of CUDA or cuDNN "
          "missing, or "
          "not whole?");
  return output->text;
}

auto ResolveCudaDevice(Plan& plan, void (*call_libraries)()) -> Status {
  ASSIGN_OR_RETURN(const auto fault, LookAtGpus(call_libraries));
  FAIL_IF(!fault.empty(), ExitCode::Environment, "the plan is for {}: {}", ToText(plan.device), fault);
  plan.device = Device::CudaSm90;
  return Success{};
}

}  // namespace shardc
