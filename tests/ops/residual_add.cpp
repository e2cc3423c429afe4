#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(ResidualAdd, AddsABranchToTheStream) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const int64_t size : {1, 17, 33, 100003}) {
      KernelFixture fixture(backend);
      const auto x = RandomNumbers(residual, size, 1);
      const auto branch = RandomNumbers(dtype, size, 2);
      std::vector<double> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        expected[i] = x[i] + branch[i];
      }
      const ValueId stream = fixture.Floats(residual, {size}, x);
      const ValueId y = fixture.Add(residual, {size});
      fixture.Run(op::ResidualAdd{.x = stream, .branch = fixture.Floats(dtype, {size}, branch), .y = y});
      ExpectClose(OpKind::ResidualAdd, "y", fixture, y, expected);
      EXPECT_EQ(fixture.Numbers(stream), x);
    }
  });
}

/// A sum out of place stands for one in place where the branch is to stay.
TEST(ResidualAdd, HasTheBitsOfAdd) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    constexpr int64_t size = 1003;
    KernelFixture fixture(backend);
    const ValueId x = fixture.Floats(dtype, {size}, RandomNumbers(dtype, size, 1));
    const ValueId branch = fixture.Floats(dtype, {size}, RandomNumbers(dtype, size, 2));
    const ValueId y = fixture.Add(dtype, {size});
    fixture.Run(op::ResidualAdd{.x = x, .branch = branch, .y = y});
    const ValueId in_place = fixture.Over(branch);
    fixture.Run(op::Add{.a = x, .b = branch, .y = in_place});
    EXPECT_EQ(fixture.Numbers(y), fixture.Numbers(in_place));
  });
}

}  // namespace shardc
