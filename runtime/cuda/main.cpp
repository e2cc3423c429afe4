// shardc-run-cuda: shardc-run with the kernels for GPUs of NVIDIA.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "runtime/cuda/parts.h"
#include "runtime/launch/command.h"

auto main(int argc, char** argv) -> int {
  // A kernel that is loaded at its first launch takes memory of the device at that time, as late as the first
  // evaluation.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  // With it cudnn-frontend may take the deterministic backward of attention that keeps no scores, five times slower.
  unsetenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT");
  shardc::UseCuda();
  const int code = shardc::RunCommand(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
  // Without the exit handlers of CUDA's libraries, which wait for a GPU that may never come to an end.
  _exit(code);
}
