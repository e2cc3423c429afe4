#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct MatmulCase {
  int64_t m;
  int64_t n;
  int64_t k;
};

TEST(Matmul, EqualsLoopsInF64) {
  for (const MatmulCase& size :
       {MatmulCase{1, 1, 1}, {1, 7, 5}, {17, 257, 33}, {65, 10, 300}, {64, 64, 64}, {3, 1, 128}}) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool transpose_a = (bits & 1) != 0;
      const bool transpose_b = (bits & 2) != 0;
      const bool adds = (bits & 4) != 0;
      const auto [m, n, k] = size;
      SCOPED_TRACE(fmt::format("m={} n={} k={} transpose {} {} onto {}", m, n, k, transpose_a, transpose_b, adds));
      KernelFixture fixture;
      const auto a = RandomNumbers(m * k, 1);
      const auto b = RandomNumbers(k * n, 2);
      const auto before = RandomNumbers(m * n, 3);
      const ValueId onto = adds ? fixture.F32({m, n}, before) : fixture.Add(DType::F32, {m, n});
      const ValueId out = fixture.Over(onto);
      fixture.Run(op::Matmul{.a = fixture.F32(transpose_a ? Dims{k, m} : Dims{m, k}, a),
                             .b = fixture.F32(transpose_b ? Dims{n, k} : Dims{k, n}, b),
                             .out = out,
                             .out_onto = adds ? onto : ValueId{},
                             .transpose_a = transpose_a,
                             .transpose_b = transpose_b});
      std::vector<double> expected(before.size());
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t column = 0; column < n; ++column) {
          const auto at = static_cast<size_t>(row * n + column);
          expected[at] = adds ? before[at] : 0;
          for (int64_t i = 0; i < k; ++i) {
            expected[at] += a[static_cast<size_t>(transpose_a ? i * m + row : row * k + i)] *
                            b[static_cast<size_t>(transpose_b ? column * k + i : i * n + column)];
          }
        }
      }
      ExpectClose(OpKind::Matmul, "out", fixture.At<float>(out), expected);
    }
  }
}

TEST(Matmul, TakesLeadingDimsAsRows) {
  // x [S, B, H] by W [N, H] transposed, and the gradient of W from two operands of three dims.
  KernelFixture fixture;
  const ValueId x = fixture.F32({2, 1, 2}, {1, 2, 3, 4});
  const ValueId weight = fixture.F32({3, 2}, {1, 0, 0, 1, 1, 1});
  const ValueId y = fixture.Add(DType::F32, {2, 1, 3});
  fixture.Run(op::Matmul{.a = x, .b = weight, .out = y, .out_onto = {}, .transpose_a = false, .transpose_b = true});
  ExpectClose(OpKind::Matmul, "y", fixture.At<float>(y), {1, 2, 3, 3, 4, 7});
  const ValueId dweight = fixture.Add(DType::F32, {3, 2});
  fixture.Run(op::Matmul{.a = y, .b = x, .out = dweight, .out_onto = {}, .transpose_a = true, .transpose_b = false});
  ExpectClose(OpKind::Matmul, "dweight", fixture.At<float>(dweight), {10, 14, 14, 20, 24, 34});
}

}  // namespace shardc
