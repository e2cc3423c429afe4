#include <gtest/gtest.h>

#include "tests/ops/norm_case.h"

namespace shardc {

/// One norm, which is compared with LibTorch's of the same numbers in f64.
static auto ExpectTorch(const Backend& backend, DType dtype, DType residual, const Dims& shape,
                        const std::vector<double>& x) -> void {
  const int64_t hidden = shape.back();
  const Dims leading{shape[0], shape[1]};
  KernelFixture fixture(backend);
  const auto weight = RandomNumbers(dtype, hidden, 2);
  const auto bias = RandomNumbers(dtype, hidden, 3);
  const LayerNormResult expected = TorchLayerNorm(NumElements(leading), hidden, 1e-5, x, weight, bias, x);
  const ValueId y = fixture.Add(dtype, shape);
  const ValueId mean = fixture.Add(DType::F32, leading);
  const ValueId rstd = fixture.Add(DType::F32, leading);
  fixture.Run(op::LayerNorm{.x = fixture.Floats(residual, shape, x),
                            .weight = fixture.Floats(dtype, {hidden}, weight),
                            .bias = fixture.Floats(dtype, {hidden}, bias),
                            .y = y,
                            .mean = mean,
                            .rstd = rstd,
                            .eps = 1e-5});
  ExpectClose(OpKind::LayerNorm, "y", fixture, y, expected.y);
  ExpectClose(OpKind::LayerNorm, "mean", fixture, mean, expected.mean);
  ExpectClose(OpKind::LayerNorm, "rstd", fixture, rstd, expected.rstd);
}

TEST(LayerNorm, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] : NormShapes(1)) {
      SCOPED_TRACE(fmt::format("S={} B={} H={}", sequence, batch, hidden));
      const Dims shape{sequence, batch, hidden};
      ExpectTorch(backend, dtype, residual, shape, RandomNumbers(residual, NumElements(shape), 1, 3));
    }
  });
}

TEST(LayerNorm, RowsFarFromZeroKeepTheirDigits) {
  // The squares of such elements have no digit of the variance left in f32.
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    const Dims shape{4, 2, 700};
    for (const double offset : {300.0, -300.0, 10'000.0, 1'000'000.0}) {
      SCOPED_TRACE(fmt::format("offset {}", offset));
      auto x = RandomNumbers(NumElements(shape), 1, residual == DType::BF16 ? offset / 50 : 1);
      for (double& element : x) {
        element += offset;
      }
      ExpectTorch(backend, dtype, residual, shape, RoundedTo(residual, x));
    }
  });
}

TEST(LayerNorm, OneElementFarFromTheOthers) {
  ForBackends([](const Backend& backend) {
    const Dims shape{1, 2, 300};
    auto x = RandomNumbers(NumElements(shape), 1);
    x[0] = 100;
    x[457] = -100;
    ExpectTorch(backend, DType::F32, DType::F32, shape, x);
  });
}

TEST(LayerNorm, RowOfOneNumberIsTheBias) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    // Sums of 3001 in f32 are rounded, and so is a mean by way of them.
    for (const double number : {0.0, 3001.0}) {
      KernelFixture fixture(backend);
      const ValueId y = fixture.Add(dtype, {1, 1, 257});
      const ValueId mean = fixture.Add(DType::F32, {1, 1});
      const ValueId rstd = fixture.Add(DType::F32, {1, 1});
      const auto bias = RandomNumbers(dtype, 257, 3);
      fixture.Run(op::LayerNorm{.x = fixture.F32({1, 1, 257}, std::vector<double>(257, number)),
                                .weight = fixture.Floats(dtype, {257}, RandomNumbers(dtype, 257, 2)),
                                .bias = fixture.Floats(dtype, {257}, bias),
                                .y = y,
                                .mean = mean,
                                .rstd = rstd,
                                .eps = 1e-6});
      EXPECT_EQ(fixture.Numbers(y), bias);
      EXPECT_EQ(fixture.At<float>(mean)[0], number);
      EXPECT_NEAR(fixture.At<float>(rstd)[0], 1000, 1e-3);
    }
  });
}

}  // namespace shardc
