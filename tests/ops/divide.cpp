#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto QuotientByTheOp(const Backend& backend, double a, double b) -> double {
  KernelFixture fixture(backend);
  const ValueId y = fixture.Add(DType::F64, {1});
  fixture.Run(op::Divide{.a = fixture.F64({a}), .b = fixture.F64({b}), .y = y, .y_onto = {}});
  return fixture.At<double>(y)[0];
}

TEST(Divide, IsTheQuotient) {
  ForBackends([](const Backend& backend) {
    EXPECT_EQ(QuotientByTheOp(backend, 1, 3), 1.0 / 3.0);
    EXPECT_EQ(QuotientByTheOp(backend, -6, 2), -3);
    EXPECT_TRUE(std::isnan(QuotientByTheOp(backend, 0, 0)));
  });
}

// The mean of nothing is no term of a sum; a division by zero that means a fault still shows.
TEST(Divide, AddsOntoASum) {
  ForBackends([](const Backend& backend) {
    const auto added = [&](double sum, double a, double b) {
      KernelFixture fixture(backend);
      const ValueId onto = fixture.F64({sum});
      const ValueId y = fixture.Over(onto);
      fixture.Run(op::Divide{.a = fixture.F64({a}), .b = fixture.F64({b}), .y = y, .y_onto = onto});
      return fixture.At<double>(y)[0];
    };
    EXPECT_EQ(added(2, 1, 4), 2.25);
    EXPECT_EQ(added(2, 0, 0), 2);
    EXPECT_TRUE(std::isinf(added(2, 1, 0)));
    EXPECT_TRUE(std::isnan(added(2, NAN, 0)));
  });
}

}  // namespace shardc
