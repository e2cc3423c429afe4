#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Gelu, EqualsLibTorchInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const bool tanh_form : {false, true}) {
      for (const int64_t size : {1, 7, 33, 257, 100003}) {
        SCOPED_TRACE(fmt::format("tanh form {}, {} elements", tanh_form, size));
        KernelFixture fixture(backend);
        const auto x = RandomNumbers(dtype, size, 1, 3);
        const ValueId y = fixture.Add(dtype, {size});
        fixture.Run(op::Gelu{.x = fixture.Floats(dtype, {size}, x), .y = y, .tanh_form = tanh_form});
        ExpectClose(OpKind::Gelu, "y", fixture, y, TorchGelu(tanh_form, x, x).y);
      }
    }
  });
}

// Where they differ by 3e-4.
TEST(Gelu, FormsAreTwo) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId x = fixture.F32({1}, {2.25});
    const ValueId y = fixture.Add(DType::F32, {1});
    const auto gelu = [&](bool tanh_form) {
      fixture.Run(op::Gelu{.x = x, .y = y, .tanh_form = tanh_form});
      return static_cast<double>(fixture.At<float>(y)[0]);
    };
    const double cubed = 2.25 + 0.044715 * 2.25 * 2.25 * 2.25;
    EXPECT_NEAR(gelu(false), 1.125 * (1 + std::erf(2.25 / std::numbers::sqrt2)), 1e-6);
    EXPECT_NEAR(gelu(true), 1.125 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * cubed)), 1e-6);
    EXPECT_GT(std::abs(gelu(true) - gelu(false)), 3e-4);
  });
}

TEST(Gelu, FarFromZeroIsItsOperandOrZero) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const bool tanh_form : {false, true}) {
      KernelFixture fixture(backend);
      const std::vector<double> x = RoundedTo(dtype, {0, 20, -20, 1e10, -1e10, 1e30, -1e30});
      const ValueId y = fixture.Add(dtype, {7});
      fixture.Run(op::Gelu{.x = fixture.Floats(dtype, {7}, x), .y = y, .tanh_form = tanh_form});
      const std::vector<double> results = fixture.Numbers(y);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(results[i], std::max(x[i], 0.0), 1e-7) << x[i];
      }
    }
  });
}

}  // namespace shardc
