#include <gtest/gtest.h>

#include "tests/ops/rope_case.h"

namespace shardc {

TEST(Rope, RotatesHalvesAndBack) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] :
         {std::array{1, 1, 1, 2}, {17, 3, 4, 6}, {65, 1, 2, 10}, {19, 2, 3, 66}, {33, 2, 4, 128}}) {
      SCOPED_TRACE(fmt::format("S={} B={} A={} D={}", sequence, batch, heads, head_dim));
      KernelFixture fixture(backend);
      const int64_t row = batch * heads * head_dim;
      const auto x = RandomNumbers(dtype, sequence * row, 1);
      const ValueId table = RopeTableOf(fixture, sequence, head_dim);
      const ValueId value = fixture.Floats(dtype, {sequence, batch, heads * head_dim}, x);
      const ValueId y = fixture.Over(value);
      fixture.Run(op::Rope{.x = value, .table = table, .y = y, .head_dim = head_dim, .inverse = false});
      ExpectClose(OpKind::Rope, "y", fixture, y, Rotated(x, row, head_dim, 1));

      const auto turned = fixture.Numbers(y);
      const ValueId back = fixture.Over(y);
      fixture.Run(op::Rope{.x = y, .table = table, .y = back, .head_dim = head_dim, .inverse = true});
      ExpectClose(OpKind::Rope, "back", fixture, back, Rotated(turned, row, head_dim, -1));
    }
  });
}

TEST(Rope, RotatesEachTokenByItsPosition) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] : {std::array{1, 1, 1, 2}, {17, 3, 4, 6}, {33, 2, 4, 128}}) {
      SCOPED_TRACE(fmt::format("S={} B={} A={} D={}", sequence, batch, heads, head_dim));
      KernelFixture fixture(backend);
      const auto positions = PositionsOfTokens(sequence * batch);
      const ValueId table = fixture.Add(DType::F32, {sequence, batch, 2, head_dim / 2});
      fixture.Run(op::RopeTableAt{.positions = fixture.I32({sequence, batch}, positions),
                                  .table = table,
                                  .frequency = RopeFrequencyOf(head_dim)});
      const int64_t row = heads * head_dim;
      const auto x = RandomNumbers(dtype, sequence * batch * row, 1);
      const ValueId value = fixture.Floats(dtype, {sequence, batch, row}, x);
      const ValueId y = fixture.Over(value);
      fixture.Run(op::Rope{.x = value, .table = table, .y = y, .head_dim = head_dim, .inverse = true});
      ExpectClose(OpKind::Rope, "y", fixture, y, Rotated(x, row, head_dim, -1, positions));
    }
  });
}

}  // namespace shardc
