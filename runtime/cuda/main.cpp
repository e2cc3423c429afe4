// shardc-run-cuda: shardc-run with the kernels for GPUs of NVIDIA.
#include "runtime/cuda/parts.h"
#include "runtime/launch/command.h"

auto main(int argc, char** argv) -> int {
  shardc::UseCuda();
  return shardc::RunCommand(argc, argv);
}
