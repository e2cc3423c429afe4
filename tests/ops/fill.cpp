#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Fill, SetsEveryElement) {
  ForBackends([](const Backend& backend) {
    for (const int64_t size : {1, 7, 1000, 100000}) {
      for (const DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32, DType::I64}) {
        for (const double value : {-3.0, 0.0, 12.0}) {
          KernelFixture fixture(backend);
          const ValueId out = fixture.Add(dtype, {size});
          fixture.Run(op::Fill{.out = out, .value = value});
          EXPECT_EQ(fixture.Numbers(out), std::vector<double>(static_cast<size_t>(size), value)) << ToText(dtype);
        }
      }
    }
  });
}

// Whole pages of them are given back to the system.
TEST(Fill, ClearsMomentsToTheirEnds) {
  ForBackends([](const Backend& backend) {
    for (const int64_t size : {7, 1000, 100001}) {
      KernelFixture fixture(backend);
      const ValueId out = fixture.F32({size}, std::vector<double>(static_cast<size_t>(size), 3));
      fixture.mutable_plan().buffers[fixture.plan().values[out].buffer].category = Category::Moments;
      fixture.Run(op::Fill{.out = out, .value = 0});
      EXPECT_EQ(fixture.Numbers(out), std::vector<double>(static_cast<size_t>(size), 0));
    }
  });
}

TEST(Fill, RoundsToBf16) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId out = fixture.Add(DType::BF16, {3});
    fixture.Run(op::Fill{.out = out, .value = 1 + 0x1.8p-8});
    EXPECT_EQ(fixture.Numbers(out), std::vector<double>(3, 1 + 0x1p-7));
  });
}

}  // namespace shardc
