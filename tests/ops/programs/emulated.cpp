// tests_ops: the tests of kernels on the CPU, and of those of GPUs as the CPU emulates them.
#include <gtest/gtest.h>

#include "tests/support/emulated/cuda.h"

auto main(int argc, char** argv) -> int {
  testing::InitGoogleTest(&argc, argv);
  shardc::UseEmulatedCuda();
  return RUN_ALL_TESTS();
}
