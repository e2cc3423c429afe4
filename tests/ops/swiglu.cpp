#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Swiglu, EqualsLoopsInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const int64_t size : {1, 7, 33, 257, 100003}) {
      KernelFixture fixture(backend);
      auto gate = RandomNumbers(dtype, size, 1, 3);
      const auto up = RandomNumbers(dtype, size, 2);
      // Where e^-x overflows or vanishes.
      gate[0] = size == 1 ? -200 : 200;
      std::vector<double> expected(gate.size());
      for (size_t i = 0; i < gate.size(); ++i) {
        expected[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      }
      const ValueId y = fixture.Add(dtype, {size});
      fixture.Run(
          op::Swiglu{.gate = fixture.Floats(dtype, {size}, gate), .up = fixture.Floats(dtype, {size}, up), .y = y});
      ExpectClose(OpKind::Swiglu, "y", fixture, y, expected);
    }
  });
}

}  // namespace shardc
