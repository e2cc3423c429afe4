#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Rope, RotatesHalvesAndBack) {
  for (const auto& [sequence, batch, heads, head_dim] :
       {std::array{1, 1, 1, 2}, {17, 3, 4, 6}, {65, 1, 2, 10}, {33, 2, 4, 128}}) {
    SCOPED_TRACE(fmt::format("S={} B={} A={} D={}", sequence, batch, heads, head_dim));
    KernelFixture fixture;
    const int half = head_dim / 2;
    const auto x = RandomNumbers(sequence * batch * heads * head_dim, 1);
    const ValueId table = fixture.Add(DType::F32, {sequence, 2, half});
    fixture.Run(op::RopeTable{.table = table, .theta = 10000});
    const ValueId value = fixture.F32({sequence, batch, heads * head_dim}, x);
    const ValueId y = fixture.Over(value);
    fixture.Run(op::Rope{.x = value, .table = table, .y = y, .head_dim = head_dim, .inverse = false});

    std::vector<double> expected(x.size());
    for (size_t at = 0; at < x.size(); ++at) {
      const int within = static_cast<int>(at) % head_dim;
      const int position = static_cast<int>(at) / (batch * heads * head_dim);
      const double angle = position / std::pow(10000.0, 2.0 * (within % half) / head_dim);
      const auto distance = static_cast<size_t>(half);
      const double other = within < half ? -x[at + distance] : x[at - distance];
      expected[at] = x[at] * std::cos(angle) + other * std::sin(angle);
    }
    ExpectClose(OpKind::Rope, "y", fixture.At<float>(y), expected);

    const ValueId back = fixture.Over(y);
    fixture.Run(op::Rope{.x = y, .table = table, .y = back, .head_dim = head_dim, .inverse = true});
    ExpectClose(OpKind::Rope, "there and back", fixture.At<float>(back), x);
  }
}

}  // namespace shardc
