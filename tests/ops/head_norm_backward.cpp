#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto SumsOfHeads(const std::vector<double>& a, const std::vector<double>& b, bool adds) -> std::vector<double> {
  std::vector<double> sums = a;
  for (size_t i = 0; adds && i < a.size(); ++i) {
    sums[i] += b[i];
  }
  return sums;
}

TEST(HeadNormBackward, EqualsLibTorchsNormOfEachHead) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] :
         {std::array{1, 1, 1, 2}, {1, 3, 2, 10}, {17, 3, 5, 12}, {65, 1, 3, 64}, {5, 2, 16, 128}}) {
      for (const bool adds_dx : {false, true}) {
        for (const bool adds_dweight : {false, true}) {
          SCOPED_TRACE(
              fmt::format("S={} B={} A={} D={} onto {} {}", sequence, batch, heads, head_dim, adds_dx, adds_dweight));
          KernelFixture fixture(backend);
          const int64_t rows = sequence * batch * heads;
          const Dims shape{sequence, batch, heads * head_dim};
          const auto x = RandomNumbers(dtype, rows * head_dim, 1);
          const auto weight = RandomNumbers(dtype, head_dim, 2);
          const auto dy = RandomNumbers(dtype, rows * head_dim, 3);
          const auto dx_before = RandomNumbers(dtype, rows * head_dim, 4);
          const auto dweight_before = RandomNumbers(head_dim, 5);
          const RmsNormResult expected = TorchRmsNorm(rows, head_dim, 1e-6, x, weight, dy);
          const ValueId dx_onto = adds_dx ? fixture.Floats(dtype, shape, dx_before) : fixture.Add(dtype, shape);
          const ValueId dweight_onto =
              adds_dweight ? fixture.F32({head_dim}, dweight_before) : fixture.Add(DType::F32, {head_dim});
          const ValueId dx = fixture.Over(dx_onto);
          const ValueId dweight = fixture.Over(dweight_onto);
          fixture.Run(op::HeadNormBackward{.dy = fixture.Floats(dtype, shape, dy),
                                           .x = fixture.Floats(dtype, shape, x),
                                           .weight = fixture.Floats(dtype, {head_dim}, weight),
                                           .rstd = fixture.F32({sequence, batch, heads}, expected.rstd),
                                           .dx = dx,
                                           .dx_onto = adds_dx ? dx_onto : ValueId{},
                                           .dweight = dweight,
                                           .dweight_onto = adds_dweight ? dweight_onto : ValueId{}});
          ExpectClose(OpKind::HeadNormBackward, "dx", fixture, dx, SumsOfHeads(expected.dx, dx_before, adds_dx));
          ExpectClose(OpKind::HeadNormBackward, "dweight", fixture, dweight,
                      SumsOfHeads(expected.dweight, dweight_before, adds_dweight));
        }
      }
    }
  });
}

}  // namespace shardc
