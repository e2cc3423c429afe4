#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

// The header belongs to the loops, which name the namespace.
#define SHARDC_LOOPS exponential_test
#include "runtime/kernels/cpu/loops/exponential.h"

namespace shardc {

using exponential_test::Exp;
using exponential_test::Sigmoid;

TEST(Exponential, IsWithinTwoUnits) {
  double worst = 0;
  for (int i = -86999; i <= 88300; ++i) {
    const float x = static_cast<float>(i) * 1e-3F;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(Exp(x)) - exact) / exact);
  }
  // Two units in the last place of f32, 2 * 2^-23.
  EXPECT_LE(worst, 2.4e-7);
}

TEST(Exponential, AtTheEnds) {
  constexpr float Infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(-Infinity), 0);
  EXPECT_EQ(Exp(-1e30F), 0);
  EXPECT_EQ(Exp(-88), 0);
  EXPECT_EQ(Exp(Infinity), Infinity);
  EXPECT_EQ(Exp(89), Infinity);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(Sigmoid(-1000), 0);
  EXPECT_EQ(Sigmoid(1000), 1);
}

}  // namespace shardc
