#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto Rotated(const std::vector<double>& x, int64_t row, int64_t head_dim, double sign) -> std::vector<double> {
  const int64_t half = head_dim / 2;
  std::vector<double> y(x.size());
  for (size_t at = 0; at < x.size(); ++at) {
    const int64_t within = static_cast<int64_t>(at) % head_dim;
    const int64_t position = static_cast<int64_t>(at) / row;
    const double exponent = 2.0 * static_cast<double>(within % half) / static_cast<double>(head_dim);
    const double angle = sign * static_cast<double>(position) / std::pow(10000.0, exponent);
    const auto distance = static_cast<size_t>(half);
    const double other = within < half ? -x[at + distance] : x[at - distance];
    y[at] = x[at] * std::cos(angle) + other * std::sin(angle);
  }
  return y;
}

TEST(Rope, RotatesHalvesAndBack) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] :
         {std::array{1, 1, 1, 2}, {17, 3, 4, 6}, {65, 1, 2, 10}, {19, 2, 3, 66}, {33, 2, 4, 128}}) {
      SCOPED_TRACE(fmt::format("S={} B={} A={} D={}", sequence, batch, heads, head_dim));
      KernelFixture fixture(backend);
      const int64_t row = batch * heads * head_dim;
      const auto x = RandomNumbers(dtype, sequence * row, 1);
      const ValueId table = fixture.Add(DType::F32, {sequence, 2, head_dim / 2});
      fixture.Run(op::RopeTable{.table = table, .frequency = fmt::format("10000 ^ (-2 * index(0) / {})", head_dim)});
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

}  // namespace shardc
