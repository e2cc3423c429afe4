#include <gtest/gtest.h>

#include <array>

#include "tests/ops/matmul_case.h"

namespace shardc {

/// Calls body(test) for some sizes, in all forms.
template <class Body>
static auto ForSums(const Body& body) -> void {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {17, 3, 33}, {33, 129, 17}, {65, 10, 300}, {130, 70, 1100}}) {
    for (const auto& [dtype, out_dtype] : MatmulTypes) {
      for (int bits = 0; bits < 4; ++bits) {
        const MatmulCase test{m, n, k, (bits & 1) != 0, (bits & 2) != 0, true, dtype, out_dtype};
        SCOPED_TRACE(ToText(test));
        body(test);
      }
    }
  }
}

static auto SumOf(KernelFixture& fixture, const MatmulCase& test, const MatmulOperands& operands) -> op::MatmulAdd {
  const auto [m, n, k, transpose_a, transpose_b, adds, dtype, out_dtype] = test;
  return {.a = fixture.Floats(dtype, transpose_a ? Dims{k, m} : Dims{m, k}, operands.a),
          .b = fixture.Floats(dtype, transpose_b ? Dims{n, k} : Dims{k, n}, operands.b),
          .x = fixture.Floats(out_dtype, {m, n}, operands.before),
          .out = fixture.Add(out_dtype, {m, n}),
          .scratch = {},
          .transpose_a = transpose_a,
          .transpose_b = transpose_b};
}

TEST(MatmulAdd, EqualsLoopsInF64) {
  ForSums([](const MatmulCase& test) {
    const MatmulOperands operands(test);
    const std::vector<double> expected = ExpectedOf(test, operands);
    ForBackends([&](const Backend& backend) {
      KernelFixture fixture(backend);
      const op::MatmulAdd body = SumOf(fixture, test, operands);
      fixture.Run(body);
      ExpectProduct(fixture, body.out, test, operands, expected);
      EXPECT_EQ(fixture.Numbers(body.x), operands.before);
    });
  });
}

// On a GPU the library's algorithm is one for both.
TEST(MatmulAdd, HasBitsOfMatmulOnto) {
  ForSums([](const MatmulCase& test) {
    const MatmulOperands operands(test);
    ForBackends([&](const Backend& backend) {
      KernelFixture fixture(backend);
      const op::MatmulAdd body = SumOf(fixture, test, operands);
      fixture.Run(body);
      const ValueId onto = fixture.Over(body.x);
      fixture.Run(op::Matmul{.a = body.a,
                             .b = body.b,
                             .out = onto,
                             .out_onto = body.x,
                             .scratch = {},
                             .transpose_a = body.transpose_a,
                             .transpose_b = body.transpose_b});
      EXPECT_EQ(fixture.Numbers(body.out), fixture.Numbers(onto));
      EXPECT_EQ(fixture.algorithms()->size(), fixture.device().MeasureMemory() ? 1U : 0U);
    });
  });
}

TEST(MatmulAdd, TakesLeadingDimsAsRows) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const op::MatmulAdd body{.a = fixture.Floats(dtype, {2, 1, 2}, {1, 2, 3, 4}),
                             .b = fixture.Floats(dtype, {3, 2}, {1, 0, 0, 1, 1, 1}),
                             .x = fixture.Floats(dtype, {2, 1, 3}, {10, 20, 30, 40, 50, 60}),
                             .out = fixture.Add(dtype, {2, 1, 3}),
                             .scratch = {},
                             .transpose_a = false,
                             .transpose_b = true};
    fixture.Run(body);
    EXPECT_EQ(fixture.Numbers(body.out), (std::vector<double>{11, 22, 33, 43, 54, 67}));
  });
}

}  // namespace shardc
