#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(SwigluBackward, EqualsLoopsInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const int64_t size : {1, 7, 33, 257, 100003}) {
      KernelFixture fixture(backend);
      auto gate = RandomNumbers(dtype, size, 1, 3);
      const auto up = RandomNumbers(dtype, size, 2);
      const auto dy = RandomNumbers(dtype, size, 3);
      gate[0] = size == 1 ? -200 : 200;
      std::vector<double> dgate_expected(gate.size());
      std::vector<double> dup_expected(gate.size());
      for (size_t i = 0; i < gate.size(); ++i) {
        const double s = 1 / (1 + std::exp(-gate[i]));
        dgate_expected[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
        dup_expected[i] = dy[i] * gate[i] * s;
      }
      const ValueId gate_value = fixture.Floats(dtype, {size}, gate);
      const ValueId up_value = fixture.Floats(dtype, {size}, up);
      const ValueId dgate = fixture.Over(gate_value);
      const ValueId dup = fixture.Over(up_value);
      fixture.Run(op::SwigluBackward{
          .dy = fixture.Floats(dtype, {size}, dy), .gate = gate_value, .up = up_value, .dgate = dgate, .dup = dup});
      ExpectClose(OpKind::SwigluBackward, "dgate", fixture, dgate, dgate_expected);
      ExpectClose(OpKind::SwigluBackward, "dup", fixture, dup, dup_expected);
    }
  });
}

}  // namespace shardc
