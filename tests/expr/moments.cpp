// Analytic moments against closed forms where those are sound, against the tail's series, and against what is known of
// narrow and far cuts.

#include "compiler/expr/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace shardc {
namespace {

auto Of(DistributionKind kind, std::vector<double> arguments) -> Moments {
  return MomentsOf({.kind = kind, .arguments = std::move(arguments)});
}

auto TruncNormal(double mean, double std, double a, double b) -> Moments {
  return Of(DistributionKind::TruncNormal, {mean, std, a, b});
}

TEST(Moments, OfWhatIsNotCut) {
  EXPECT_EQ(Of(DistributionKind::Constant, {3}).mean, 3);
  EXPECT_EQ(Of(DistributionKind::Constant, {3}).std, 0);
  EXPECT_EQ(Of(DistributionKind::Normal, {1, 0.02}).mean, 1);
  EXPECT_EQ(Of(DistributionKind::Normal, {1, 0.02}).std, 0.02);
  EXPECT_EQ(Of(DistributionKind::Uniform, {-1, 5}).mean, 2);
  EXPECT_DOUBLE_EQ(Of(DistributionKind::Uniform, {-1, 5}).std, std::sqrt(3.0));
  EXPECT_TRUE(std::isfinite(Of(DistributionKind::Uniform, {-1.7e308, 1.7e308}).std));
}

auto Density(double x) -> double { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
auto Probability(double x) -> double { return std::erfc(-x / std::sqrt(2.0)) / 2; }

TEST(Moments, OfCutNormalsByTheClosedForm) {
  for (const auto& [a, b] : {std::pair(-2.0, 2.0), {-3.0, 3.0}, {-1.0, 2.5}, {0.0, 4.0}, {-8.0, 1.0}, {1.0, 2.0}}) {
    const double mass = Probability(b) - Probability(a);
    const double mean = (Density(a) - Density(b)) / mass;
    const double variance = 1 + (a * Density(a) - b * Density(b)) / mass - mean * mean;
    const Moments cut = TruncNormal(5, 0.1, 5 + 0.1 * a, 5 + 0.1 * b);
    EXPECT_NEAR(cut.mean, 5 + 0.1 * mean, 1e-13) << a << ' ' << b;
    EXPECT_NEAR(cut.std / (0.1 * std::sqrt(variance)), 1, 1e-12) << a << ' ' << b;
  }
  // Bounds that cut nothing: 100 sigma.
  EXPECT_DOUBLE_EQ(TruncNormal(0, 0.02, -2, 2).std, 0.02);
  EXPECT_EQ(TruncNormal(0, 0.02, -2, 2).mean, 0);
}

TEST(Moments, OfNarrowAndFarCuts) {
  // So narrow that it is uniform.
  EXPECT_NEAR(TruncNormal(0, 1, 1, 1 + 1e-6).std / (1e-6 / std::sqrt(12.0)), 1, 1e-9);
  EXPECT_NEAR(TruncNormal(0, 1, -1e-8, 1e-8).std / (1e-8 / std::sqrt(3.0)), 1, 1e-12);
  // So far out that it is exponential: x - a has mean 1/a - 2/a^3, deviation 1/a - 3/a^3, up to 1/a^5.
  const Moments far = TruncNormal(0, 1, 1000, 1e9);
  EXPECT_NEAR((far.mean - 1000) / (1e-3 - 2e-9), 1, 1e-10);
  EXPECT_NEAR(far.std / (1e-3 - 3e-9), 1, 1e-10);
  const Moments mirrored = TruncNormal(0, 1, -1e9, -1000);
  EXPECT_DOUBLE_EQ(mirrored.mean, -far.mean);
  EXPECT_NEAR(mirrored.std / far.std, 1, 1e-12);
}

}  // namespace
}  // namespace shardc
