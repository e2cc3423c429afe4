// The standard normal law: that of doubles against MPFR at random points, that of floats against it, at all points.

#include "compiler/expr/normal_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/expr_accuracy/real.h"

namespace shardc {
namespace {

constexpr int NumPoints = 1 << 13;

/// By turns anywhere from 0 to 1, near 0, and near 1.
auto Probability(std::mt19937_64& random, int turn) -> double {
  const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
  return turn % 3 == 0 ? u : turn % 3 == 1 ? std::exp2(-1022 * u) : 1 - std::exp2(-1 - 51 * u);
}

auto SetToCdf(Real& to, double x) -> void {
  static Real root;
  mpfr_sqrt_ui(root.get(), 2, MPFR_RNDN);
  mpfr_d_div(root.get(), -x, root.get(), MPFR_RNDN);
  mpfr_erfc(to.get(), root.get(), MPFR_RNDN);
  mpfr_div_2ui(to.get(), to.get(), 1, MPFR_RNDN);
}

TEST(NormalLaw, CdfIsOffByFourUlpAtMost) {
  std::mt19937_64 random;
  Real expected;
  double most = 0;
  for (int i = 0; i < NumPoints; ++i) {
    const double x =
        -38.6 + (i % 4 == 0 ? 47 : 0) + static_cast<double>(random() >> 11) * 0x1p-53 * (i % 2 == 0 ? 38.6 : 8);
    SetToCdf(expected, x);
    const double off = UlpsOff(NormalCdf(x), expected);
    ASSERT_LE(off, 4) << x;
    most = std::max(most, off);
  }
  EXPECT_GE(most, 3);
}

// MPFR has no quantile: by how far the probability of the value misses p, over the density there.
TEST(NormalLaw, QuantileIsOffByFiveUlpAtMost) {
  std::mt19937_64 random;
  Real missed;
  double most = 0;
  for (int i = 0; i < NumPoints; ++i) {
    const double p = Probability(random, i);
    const double x = NormalQuantile(p);
    SetToCdf(missed, x);
    mpfr_sub_d(missed.get(), missed.get(), p, MPFR_RNDN);
    const double off = std::abs(missed.ToDouble() * std::sqrt(2 * M_PI) / std::exp(-x * x / 2) / UlpOf(x));
    ASSERT_LE(off, 5) << p;
    most = std::max(most, off);
  }
  EXPECT_GE(most, 3);
}

// Every value that a normal element can begin with.
TEST(NormalLaw, FloatsAreOffByThreeAndAHalfUlpAtMost) {
  double most = 0;
  float last = 0;
  for (int m = 0; m < 1 << 23; ++m) {
    const float x = (static_cast<float>(m) + 0.5F) * 0x1p-23F;
    const float value = StandardNormal(x);
    ASSERT_EQ(StandardNormal(-x), -value) << x;
    ASSERT_GT(value, last) << x;
    last = value;
    const double p = 0.5 * (1 - static_cast<double>(x));
    const double expected = -NormalQuantile(p);
    const double off = std::abs(value - expected) / std::ldexp(1.0, std::ilogb(expected) - 23);
    ASSERT_LE(off, 3.5) << x;
    most = std::max(most, off);
  }
  EXPECT_GE(most, 3.4);
}

}  // namespace
}  // namespace shardc
