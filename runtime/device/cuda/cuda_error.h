// Errors of the CUDA runtime as errors of ours.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// Returns the status of a call. `what`: what was done, as "waiting for the device". After most errors the device does
/// nothing more for this process.
inline auto CudaStatus(cudaError_t code, std::string_view what) -> Status {
  return code == cudaSuccess ? Status(Success{})
                             : Fail(ExitCode::Environment, "{}: {} ({}, {})", what, cudaGetErrorString(code),
                                    cudaGetErrorName(code), static_cast<int>(code));
}

/// Returns true if the result of a query says that work is over. Errors: those of the device.
inline auto IsOver(cudaError_t queried) -> ErrorOr<bool> {
  if (queried == cudaErrorNotReady) {
    // Or the next launch of a kernel would take it for its own error.
    cudaGetLastError();
    return false;
  }
  RETURN_IF_ERROR(CudaStatus(queried, "the GPU"));
  return true;
}

}  // namespace shardc
