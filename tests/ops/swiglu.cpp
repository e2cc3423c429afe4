#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Swiglu, EqualsLoopsInF64) {
  for (const int64_t size : {1, 7, 257, 100003}) {
    KernelFixture fixture;
    auto gate = RandomNumbers(size, 1, 3);
    const auto up = RandomNumbers(size, 2);
    // Where e^-x overflows or vanishes.
    gate[0] = size == 1 ? -200 : 200;
    std::vector<double> expected(gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      expected[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    }
    const ValueId y = fixture.Add(DType::F32, {size});
    fixture.Run(op::Swiglu{.gate = fixture.F32({size}, gate), .up = fixture.F32({size}, up), .y = y});
    ExpectClose(OpKind::Swiglu, "y", fixture.At<float>(y), expected);
  }
}

}  // namespace shardc
