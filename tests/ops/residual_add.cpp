#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(ResidualAdd, AddsABranchInBf16) {
  ForBackends([](const Backend& backend) {
    for (const int64_t size : {1, 17, 33, 100003}) {
      KernelFixture fixture(backend);
      const auto x = RandomNumbers(size, 1);
      const auto branch = RandomNumbers(DType::BF16, size, 2);
      std::vector<double> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        expected[i] = x[i] + branch[i];
      }
      const ValueId stream = fixture.F32({size}, x);
      const ValueId y = fixture.Add(DType::F32, {size});
      fixture.Run(op::ResidualAdd{.x = stream, .branch = fixture.BF16({size}, branch), .y = y});
      ExpectClose(OpKind::ResidualAdd, "y", fixture, y, expected);
      EXPECT_EQ(fixture.Numbers(stream), x);
    }
  });
}

}  // namespace shardc
