// shardc-run-cuda: shardc-run with the kernels for GPUs of NVIDIA.
#include <cstdlib>

#include "runtime/cuda/parts.h"
#include "runtime/launch/command.h"

auto main(int argc, char** argv) -> int {
  // A kernel that is loaded at its first launch takes memory of the device at that time, as late as the first
  // evaluation.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  shardc::UseCuda();
  return shardc::RunCommand(argc, argv);
}
