#include <gtest/gtest.h>

#include "tests/ops/norm_case.h"

namespace shardc {

TEST(RmsNorm, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] : NormShapes(1)) {
      ExpectTorchNorm<op::RmsNorm>(OpKind::RmsNorm, backend,
                                   {dtype, residual, {sequence, batch, hidden}, {sequence, batch}, hidden, 1e-5});
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
