#include <gtest/gtest.h>

#include <array>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

constexpr double NormEpsilon = 1e-5;

/// Rows that share a warp, that have warps, and that are wider than what threads keep, in whole vectors and not.
constexpr std::array<int64_t, 3> SummedNorms[] = {{1, 1, 1},    {1, 3, 10},   {17, 3, 70},  {65, 1, 257},
                                                  {5, 2, 2048}, {64, 3, 128}, {3, 1, 8200}, {3, 1, 4101}};

/// Calls body(fixture, op) for each backend, pair of types and shape, when the op has run.
template <class Body>
static auto ForSummedNorms(const Body& body) -> void {
  ForResidualTypes([&](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] : SummedNorms) {
      SCOPED_TRACE(fmt::format("S={} B={} H={}", sequence, batch, hidden));
      KernelFixture fixture(backend);
      const Dims shape{sequence, batch, hidden};
      const int64_t size = NumElements(shape);
      const op::AddRmsNorm op{.x = fixture.Floats(residual, shape, RandomNumbers(residual, size, 1, 3)),
                              .branch = fixture.Floats(dtype, shape, RandomNumbers(dtype, size, 2)),
                              .weight = fixture.Floats(dtype, {hidden}, RandomNumbers(dtype, hidden, 3)),
                              .sum = fixture.Add(residual, shape),
                              .y = fixture.Add(dtype, shape),
                              .rstd = fixture.Add(DType::F32, {sequence, batch}),
                              .eps = NormEpsilon};
      fixture.Run(op);
      body(fixture, op);
    }
  });
}

TEST(AddRmsNorm, EqualsLibTorchInF64) {
  ForSummedNorms([](KernelFixture& fixture, const op::AddRmsNorm& op) {
    const Value& sum = fixture.plan().values[op.sum];
    std::vector<double> expected_sum = fixture.Numbers(op.x);
    const auto branch = fixture.Numbers(op.branch);
    for (size_t i = 0; i < expected_sum.size(); ++i) {
      expected_sum[i] += branch[i];
    }
    expected_sum = RoundedTo(sum.dtype, expected_sum);
    const RmsNormResult expected = TorchRmsNorm(sum.shape[0] * sum.shape[1], sum.shape[2], NormEpsilon, expected_sum,
                                                fixture.Numbers(op.weight), expected_sum);
    EXPECT_EQ(fixture.Numbers(op.sum), expected_sum);
    ExpectClose(OpKind::RmsNorm, "y", fixture, op.y, expected.y);
    ExpectClose(OpKind::RmsNorm, "rstd", fixture, op.rstd, expected.rstd);
  });
}

TEST(AddRmsNorm, HasBitsOfParts) {
  ForSummedNorms([](KernelFixture& fixture, const op::AddRmsNorm& op) {
    const auto like = [&](ValueId value) {
      const Value& of = fixture.plan().values[value];
      return fixture.Add(of.dtype, Dims(of.shape));
    };
    const ValueId sum = like(op.sum);
    const op::RmsNorm norm{.x = sum, .weight = op.weight, .y = like(op.y), .rstd = like(op.rstd), .eps = op.eps};
    fixture.Run(op::ResidualAdd{.x = op.x, .branch = op.branch, .y = sum});
    fixture.Run(norm);
    EXPECT_EQ(fixture.Numbers(op.sum), fixture.Numbers(sum));
    EXPECT_EQ(fixture.Numbers(op.y), fixture.Numbers(norm.y));
    EXPECT_EQ(fixture.Numbers(op.rstd), fixture.Numbers(norm.rstd));
  });
}

}  // namespace shardc
