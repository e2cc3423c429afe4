#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto Sums(const std::vector<double>& a, const std::vector<double>& b, bool adds) -> std::vector<double> {
  std::vector<double> sums = a;
  for (size_t i = 0; adds && i < a.size(); ++i) {
    sums[i] += b[i];
  }
  return sums;
}

TEST(RmsNormBackward, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] :
         {std::array{1, 1, 2}, {1, 3, 10}, {17, 3, 70}, {65, 1, 257}, {5, 2, 2048}, {64, 3, 128}}) {
      for (const bool adds_dx : {false, true}) {
        for (const bool adds_dweight : {false, true}) {
          SCOPED_TRACE(fmt::format("S={} B={} H={} onto {} {}", sequence, batch, hidden, adds_dx, adds_dweight));
          KernelFixture fixture(backend);
          const int64_t rows = sequence * batch;
          const Dims shape{sequence, batch, hidden};
          const auto x = RandomNumbers(residual, rows * hidden, 1);
          const auto weight = RandomNumbers(dtype, hidden, 2);
          const auto dy = RandomNumbers(dtype, rows * hidden, 3);
          const auto dx_before = RandomNumbers(residual, rows * hidden, 4);
          const auto dweight_before = RandomNumbers(hidden, 5);
          const RmsNormResult expected = TorchRmsNorm(rows, hidden, 1e-5, x, weight, dy);
          const ValueId dx_onto = adds_dx ? fixture.Floats(residual, shape, dx_before) : fixture.Add(residual, shape);
          const ValueId dweight_onto =
              adds_dweight ? fixture.F32({hidden}, dweight_before) : fixture.Add(DType::F32, {hidden});
          const ValueId dx = fixture.Over(dx_onto);
          const ValueId dweight = fixture.Over(dweight_onto);
          fixture.Run(op::RmsNormBackward{.dy = fixture.Floats(dtype, shape, dy),
                                          .x = fixture.Floats(residual, shape, x),
                                          .weight = fixture.Floats(dtype, {hidden}, weight),
                                          .rstd = fixture.F32({sequence, batch}, expected.rstd),
                                          .dx = dx,
                                          .dx_onto = adds_dx ? dx_onto : ValueId{},
                                          .dweight = dweight,
                                          .dweight_onto = adds_dweight ? dweight_onto : ValueId{}});
          ExpectClose(OpKind::RmsNormBackward, "dx", fixture, dx, Sums(expected.dx, dx_before, adds_dx));
          ExpectClose(OpKind::RmsNormBackward, "dweight", fixture, dweight,
                      Sums(expected.dweight, dweight_before, adds_dweight));
        }
      }
    }
  });
}

}  // namespace shardc
