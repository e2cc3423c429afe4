#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(HeadNorm, EqualsLibTorchsNormOfEachHead) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] :
         {std::array{1, 1, 1, 2}, {1, 3, 2, 10}, {17, 3, 5, 12}, {65, 1, 3, 64}, {5, 2, 16, 128}}) {
      SCOPED_TRACE(fmt::format("S={} B={} A={} D={}", sequence, batch, heads, head_dim));
      KernelFixture fixture(backend);
      const int64_t rows = sequence * batch * heads;
      const Dims shape{sequence, batch, heads * head_dim};
      const auto x = RandomNumbers(dtype, rows * head_dim, 1, 3);
      const auto weight = RandomNumbers(dtype, head_dim, 2);
      const RmsNormResult expected = TorchRmsNorm(rows, head_dim, 1e-6, x, weight, x);
      const ValueId y = fixture.Add(dtype, shape);
      const ValueId rstd = fixture.Add(DType::F32, {sequence, batch, heads});
      fixture.Run(op::HeadNorm{.x = fixture.Floats(dtype, shape, x),
                               .weight = fixture.Floats(dtype, {head_dim}, weight),
                               .y = y,
                               .rstd = rstd,
                               .eps = 1e-6});
      ExpectClose(OpKind::HeadNorm, "y", fixture, y, expected.y);
      ExpectClose(OpKind::HeadNorm, "rstd", fixture, rstd, expected.rstd);
    }
  });
}

}  // namespace shardc
