#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(GeluBackward, EqualsLibTorchInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const bool tanh_form : {false, true}) {
      for (const int64_t size : {1, 7, 33, 257, 100003}) {
        SCOPED_TRACE(fmt::format("tanh form {}, {} elements", tanh_form, size));
        KernelFixture fixture(backend);
        const auto x = RandomNumbers(dtype, size, 1, 3);
        const auto dy = RandomNumbers(dtype, size, 2);
        const ValueId x_value = fixture.Floats(dtype, {size}, x);
        const ValueId dx = fixture.Over(x_value);
        fixture.Run(
            op::GeluBackward{.dy = fixture.Floats(dtype, {size}, dy), .x = x_value, .dx = dx, .tanh_form = tanh_form});
        ExpectClose(OpKind::GeluBackward, "dx", fixture, dx, TorchGelu(tanh_form, x, dy).dx);
      }
    }
  });
}

TEST(GeluBackward, FarFromZeroIsOneOrZero) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const bool tanh_form : {false, true}) {
      KernelFixture fixture(backend);
      const ValueId x = fixture.Floats(dtype, {7}, RoundedTo(dtype, {0, 20, -20, 1e10, -1e10, 1e30, -1e30}));
      const ValueId dx = fixture.Over(x);
      fixture.Run(op::GeluBackward{
          .dy = fixture.Floats(dtype, {7}, std::vector<double>(7, 1)), .x = x, .dx = dx, .tanh_form = tanh_form});
      EXPECT_EQ(fixture.Numbers(dx), (std::vector<double>{0.5, 1, 0, 1, 0, 1, 0}));
    }
  });
}

}  // namespace shardc
