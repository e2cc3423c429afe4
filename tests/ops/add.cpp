#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Add, AddsOverTheSecond) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const int64_t size : {1, 17, 100003}) {
      KernelFixture fixture(backend);
      const auto a = RandomNumbers(dtype, size, 1);
      const auto b = RandomNumbers(dtype, size, 2);
      std::vector<double> expected(a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        expected[i] = a[i] + b[i];
      }
      const ValueId left = fixture.Floats(dtype, {size}, a);
      const ValueId right = fixture.Floats(dtype, {size}, b);
      const ValueId y = fixture.Over(right);
      fixture.Run(op::Add{.a = left, .b = right, .y = y});
      ExpectClose(OpKind::Add, "y", fixture, y, expected);
      EXPECT_EQ(fixture.Numbers(left), a);
    }
  });
}

}  // namespace shardc
