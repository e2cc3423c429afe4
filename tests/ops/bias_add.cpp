#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(BiasAdd, AddsToEachRow) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, width] :
         {std::array{1, 1, 1}, {1, 3, 10}, {17, 3, 70}, {65, 1, 257}, {5, 2, 2048}}) {
      SCOPED_TRACE(fmt::format("S={} B={} H={}", sequence, batch, width));
      KernelFixture fixture(backend);
      const Dims shape{sequence, batch, width};
      auto expected = RandomNumbers(dtype, NumElements(shape), 1);
      const auto bias = RandomNumbers(dtype, width, 2);
      const ValueId x = fixture.Floats(dtype, shape, expected);
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += bias[i % static_cast<size_t>(width)];
      }
      const ValueId added = fixture.Floats(dtype, {width}, bias);
      const ValueId y = fixture.Over(x);
      fixture.Run(op::BiasAdd{.x = x, .bias = added, .y = y});
      ExpectClose(OpKind::BiasAdd, "y", fixture, y, expected);
      EXPECT_EQ(fixture.Numbers(added), bias);
    }
  });
}

}  // namespace shardc
