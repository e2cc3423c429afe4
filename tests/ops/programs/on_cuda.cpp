// tests_ops_cuda: the tests of kernels on the GPU of this machine, without those of other backends.
#include <gtest/gtest.h>

#include "runtime/cuda/parts.h"
#include "tests/support/kernel_fixture.h"

auto main(int argc, char** argv) -> int {
  testing::InitGoogleTest(&argc, argv);
  shardc::UseCuda();
  shardc::Backends() = {{shardc::Device::CudaSm90, shardc::KernelSet::Fused}};
  return RUN_ALL_TESTS();
}
