#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

/// Calls body(fixture, dtype, gate, up, dy, op) for each backend, element type and size, when the op has run.
template <class Body>
static auto ForGradientsWithY(const Body& body) -> void {
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (const int64_t size : {1, 7, 33, 257, 2055, 100003}) {
      SCOPED_TRACE(size);
      KernelFixture fixture(backend);
      auto gate = RandomNumbers(dtype, size, 1, 3);
      gate[0] = size == 1 ? -200 : 200;
      const auto up = RandomNumbers(dtype, size, 2);
      const auto dy = RandomNumbers(dtype, size, 3);
      op::SwigluBackwardAgain op{.dy = fixture.Floats(dtype, {size}, dy),
                                 .gate = fixture.Floats(dtype, {size}, gate),
                                 .up = fixture.Floats(dtype, {size}, up)};
      op.dgate = fixture.Over(op.gate);
      op.dup = fixture.Over(op.up);
      op.y = fixture.Over(op.dy);
      fixture.Run(op);
      body(fixture, dtype, gate, up, dy, op);
    }
  });
}

TEST(SwigluBackwardAgain, EqualsLoopsInF64) {
  ForGradientsWithY([](KernelFixture& fixture, DType, const auto& gate, const auto& up, const auto& dy,
                       const op::SwigluBackwardAgain& op) {
    std::vector<double> dgate_expected(gate.size());
    std::vector<double> dup_expected(gate.size());
    std::vector<double> y_expected(gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double s = 1 / (1 + std::exp(-gate[i]));
      dgate_expected[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
      dup_expected[i] = dy[i] * gate[i] * s;
      y_expected[i] = gate[i] * s * up[i];
    }
    ExpectClose(OpKind::SwigluBackward, "dgate", fixture, op.dgate, dgate_expected);
    ExpectClose(OpKind::SwigluBackward, "dup", fixture, op.dup, dup_expected);
    ExpectClose(OpKind::Swiglu, "y", fixture, op.y, y_expected);
  });
}

TEST(SwigluBackwardAgain, HasBitsOfParts) {
  ForGradientsWithY([](KernelFixture& fixture, DType dtype, const auto& gate, const auto& up, const auto& dy,
                       const op::SwigluBackwardAgain& op) {
    const Dims shape{static_cast<int64_t>(gate.size())};
    const op::Swiglu forward{.gate = fixture.Floats(dtype, shape, gate),
                             .up = fixture.Floats(dtype, shape, up),
                             .y = fixture.Add(dtype, shape)};
    fixture.Run(forward);
    const op::SwigluBackward backward{.dy = fixture.Floats(dtype, shape, dy),
                                      .gate = forward.gate,
                                      .up = forward.up,
                                      .dgate = fixture.Over(forward.gate),
                                      .dup = fixture.Over(forward.up)};
    fixture.Run(backward);
    EXPECT_EQ(fixture.Numbers(op.dgate), fixture.Numbers(backward.dgate));
    EXPECT_EQ(fixture.Numbers(op.dup), fixture.Numbers(backward.dup));
    EXPECT_EQ(fixture.Numbers(op.y), fixture.Numbers(forward.y));
  });
}

}  // namespace shardc
