// Products of the tests of matmul and matmul_add, against loops in f64.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct MatmulCase {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds = false;
  DType dtype = DType::F32;
  DType out_dtype = DType::F32;
};

inline auto ToText(const MatmulCase& test) -> std::string {
  return fmt::format("m={} n={} k={} transpose {} {} adds {} {} into {}", test.m, test.n, test.k, test.transpose_a,
                     test.transpose_b, test.adds, ToText(test.dtype), ToText(test.out_dtype));
}

/// Numbers of a size that keeps sums at about 1.
struct MatmulOperands {
  explicit MatmulOperands(const MatmulCase& test)
      : a(RandomNumbers(test.dtype, test.m * test.k, 1, std::pow(static_cast<double>(test.k), -0.25))),
        b(RandomNumbers(test.dtype, test.k * test.n, 2, std::pow(static_cast<double>(test.k), -0.25))),
        before(RandomNumbers(test.out_dtype, test.m * test.n, 3)) {}

  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> before;
};

inline auto ExpectedOf(const MatmulCase& test, const MatmulOperands& operands) -> std::vector<double> {
  const auto [m, n, k, transpose_a, transpose_b, adds, dtype, out_dtype] = test;
  std::vector<double> b_KN(operands.b.size());
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t column = 0; column < n; ++column) {
      b_KN[static_cast<size_t>(i * n + column)] =
          operands.b[static_cast<size_t>(transpose_b ? column * k + i : i * n + column)];
    }
  }
  std::vector<double> sums = adds ? operands.before : std::vector<double>(static_cast<size_t>(m * n));
  for (int64_t row = 0; row < m; ++row) {
    double* const to = sums.data() + row * n;
    for (int64_t i = 0; i < k; ++i) {
      const double left = operands.a[static_cast<size_t>(transpose_a ? i * m + row : row * k + i)];
      const double* const from = b_KN.data() + i * n;
      for (int64_t column = 0; column < n; ++column) {
        to[column] += left * from[column];
      }
    }
  }
  return sums;
}

/// Expects a result within the tolerance of products.
inline auto ExpectProduct(KernelFixture& fixture, ValueId out, MatmulCase test, const MatmulOperands& operands,
                          const std::vector<double>& expected) -> void {
  // cuBLASLt rounds a product in bf16 before it adds it, as PyTorch does.
  std::vector<double> rounded_first;
  if (test.adds && test.out_dtype == DType::BF16 && FactsOf(fixture.plan().device).family == DeviceFamily::Cuda) {
    test.adds = false;
    rounded_first = ExpectedOf(test, operands);
  }
  ExpectClose(OpKind::Matmul, "out", fixture, out, expected, rounded_first);
}

constexpr std::pair<DType, DType> MatmulTypes[] = {
    {DType::F32, DType::F32}, {DType::BF16, DType::BF16}, {DType::BF16, DType::F32}};

}  // namespace shardc
