#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Scale, MultipliesInPlace) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const int64_t size : {1, 17, 100003}) {
      for (const double factor : {2.0, -0.3535, 1e-3}) {
        KernelFixture fixture(backend);
        const auto x = RandomNumbers(dtype, size, 1);
        std::vector<double> expected(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          expected[i] = factor * x[i];
        }
        const ValueId value = fixture.Floats(dtype, {size}, x);
        const ValueId y = fixture.Over(value);
        fixture.Run(op::Scale{.x = value, .y = y, .factor = factor});
        ExpectClose(OpKind::Scale, "y", fixture, y, expected);
      }
    }
  });
}

// A power of 2 changes no bit of the others.
TEST(Scale, ByTwoIsExact) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const auto x = RandomNumbers(dtype, 257, 1);
    const ValueId value = fixture.Floats(dtype, {257}, x);
    const ValueId y = fixture.Over(value);
    fixture.Run(op::Scale{.x = value, .y = y, .factor = 2});
    const std::vector<double> results = fixture.Numbers(y);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(results[i], 2 * x[i]);
    }
  });
}

}  // namespace shardc
