#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(RmsNorm, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] :
         {std::array{1, 1, 1}, {1, 3, 10}, {17, 3, 70}, {65, 1, 257}, {5, 2, 2048}, {64, 3, 128}}) {
      SCOPED_TRACE(fmt::format("S={} B={} H={}", sequence, batch, hidden));
      KernelFixture fixture(backend);
      const int64_t rows = sequence * batch;
      const auto x = RandomNumbers(residual, rows * hidden, 1, 3);
      const auto weight = RandomNumbers(dtype, hidden, 2);
      const RmsNormResult expected = TorchRmsNorm(rows, hidden, 1e-5, x, weight, x);
      const ValueId y = fixture.Add(dtype, {sequence, batch, hidden});
      const ValueId rstd = fixture.Add(DType::F32, {sequence, batch});
      fixture.Run(op::RmsNorm{.x = fixture.Floats(residual, {sequence, batch, hidden}, x),
                              .weight = fixture.Floats(dtype, {hidden}, weight),
                              .y = y,
                              .rstd = rstd,
                              .eps = 1e-5});
      ExpectClose(OpKind::RmsNorm, "y", fixture, y, expected.y);
      ExpectClose(OpKind::RmsNorm, "rstd", fixture, rstd, expected.rstd);
    }
  });
}

TEST(RmsNorm, ZeroRowStaysZero) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId y = fixture.Add(DType::F32, {1, 1, 3});
    const ValueId rstd = fixture.Add(DType::F32, {1, 1});
    fixture.Run(op::RmsNorm{.x = fixture.F32({1, 1, 3}, {0, 0, 0}),
                            .weight = fixture.F32({3}, {1, 2, 3}),
                            .y = y,
                            .rstd = rstd,
                            .eps = 1e-6});
    EXPECT_EQ(fixture.At<float>(y)[2], 0);
    EXPECT_NEAR(fixture.At<float>(rstd)[0], 1000, 1e-3);
  });
}

}  // namespace shardc
