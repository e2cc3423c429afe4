#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto Quotient(double a, double b) -> double {
  KernelFixture fixture;
  const ValueId y = fixture.Add(DType::F64, {1});
  fixture.Run(op::Divide{.a = fixture.F64({a}), .b = fixture.F64({b}), .y = y});
  return fixture.At<double>(y)[0];
}

TEST(Divide, IsTheQuotient) {
  EXPECT_EQ(Quotient(1, 3), 1.0 / 3.0);
  EXPECT_EQ(Quotient(-6, 2), -3);
  EXPECT_TRUE(std::isnan(Quotient(0, 0)));
}

}  // namespace shardc
