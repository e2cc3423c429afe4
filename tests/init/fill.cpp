#include "runtime/init/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/expr/moments.h"
#include "runtime/init/blocks.h"
#include "runtime/init/normal_quantile.h"

namespace shardc {
namespace {

auto Fill(const Distribution& rule, int64_t n, uint64_t seed = 1, std::string_view name = "w", int64_t begin = 0)
    -> std::vector<float> {
  std::vector<float> values(static_cast<size_t>(n));
  FillRule(rule, seed, name, {begin, begin + n}, values.data());
  return values;
}

const Distribution Rules[] = {
    {DistributionKind::Constant, {0.5}},
    {DistributionKind::Normal, {0.25, 2}},
    {DistributionKind::TruncNormal, {0, 0.02, -0.04, 0.04}},
    {DistributionKind::Uniform, {-1, 3}},
};

TEST(FillRule, ElementsDoNotDependOnTheInterval) {
  for (const Distribution& rule : Rules) {
    const std::vector<float> whole = Fill(rule, 1000);
    for (const int64_t parts : {1, 2, 3, 4, 7, 512}) {
      std::vector<float> joined(1000);
      for (int64_t part = 0; part < parts; ++part) {
        const Interval own{1000 * part / parts, 1000 * (part + 1) / parts};
        FillRule(rule, 1, "w", own, joined.data() + own.begin);
      }
      EXPECT_EQ(joined, whole) << ToText(rule) << " in " << parts;
    }
  }
}

// Blocks of elements are drawn at once; one by one they are the same, to the bit.
TEST(FillRule, IsItsFormulaElementByElement) {
  constexpr int64_t Begin = (int64_t{1} << 32) - 100'000;
  constexpr int64_t Count = 200'001;
  const PhiloxKey key = InitKey(1, "w");
  const std::vector<float> normal = Fill({DistributionKind::Normal, {0.25, 2}}, Count, 1, "w", Begin);
  const std::vector<float> uniform = Fill({DistributionKind::Uniform, {-1, 3}}, Count, 1, "w", Begin);
  for (int64_t i = 0; i < Count; ++i) {
    const double u = InitUniform(key, Begin + i);
    ASSERT_EQ(normal[static_cast<size_t>(i)], static_cast<float>(0.25 + 2 * NormalQuantile(u))) << i;
    ASSERT_EQ(uniform[static_cast<size_t>(i)], static_cast<float>(-1 + 4 * u)) << i;
  }
}

TEST(FillRule, DependsOnSeedNameAndIndex) {
  const Distribution rule{DistributionKind::Uniform, {0, 1}};
  const std::vector<float> values = Fill(rule, 1000);
  EXPECT_NE(values, Fill(rule, 1000, 2));
  EXPECT_NE(values, Fill(rule, 1000, 1, "v"));
  EXPECT_NE(values, Fill(rule, 1000, 1, "w", 1000));
  // Beyond 32 bits the index still counts.
  EXPECT_NE(values, Fill(rule, 1000, 1, "w", int64_t{1} << 32));
  EXPECT_EQ(values, Fill(rule, 1000));
}

TEST(FillRule, ConstantAndEmpty) {
  EXPECT_EQ(Fill({DistributionKind::Constant, {1}}, 3), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(Fill({DistributionKind::Normal, {0, 1}}, 0).empty());
  EXPECT_EQ(Fill({DistributionKind::Normal, {3, 0}}, 2), (std::vector<float>{3, 3}));
  EXPECT_EQ(Fill({DistributionKind::TruncNormal, {3, 0, -1, 1}}, 2), (std::vector<float>{1, 1}));
}

auto NormalCdf(double x) -> double { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct LawCase {
  std::string what;
  Distribution rule;
  double mean;
  double variance;
  std::function<double(double)> cdf;
};

/// Truncated to [a, b] in units of the standard deviation.
auto TruncCdf(double a, double b) -> std::function<double(double)> {
  return [=](double x) { return (NormalCdf(x) - NormalCdf(a)) / (NormalCdf(b) - NormalCdf(a)); };
}

TEST(FillRule, FollowsTheLaw) {
  constexpr int64_t N = 200'000;
  // Variance of the standard normal truncated to [-2, 2]: 1 - 4 phi(2) / (2 Phi(2) - 1).
  const LawCase cases[] = {
      {"normal", {DistributionKind::Normal, {0, 1}}, 0, 1, NormalCdf},
      {"scaled normal",
       {DistributionKind::Normal, {5, 0.5}},
       5,
       0.25,
       [](double x) { return NormalCdf((x - 5) / 0.5); }},
      {"uniform", {DistributionKind::Uniform, {-2, 4}}, 1, 3, [](double x) { return (x + 2) / 6; }},
      {"truncated", {DistributionKind::TruncNormal, {0, 1, -2, 2}}, 0, 0.7737, TruncCdf(-2, 2)},
      {"one-sided", {DistributionKind::TruncNormal, {0, 1, 1, 9}}, 1.5251, 0.1991, TruncCdf(1, 9)},
      {"other side", {DistributionKind::TruncNormal, {0, 1, -9, -1}}, -1.5251, 0.1991, TruncCdf(-9, -1)},
  };
  for (const LawCase& row : cases) {
    std::vector<float> values = Fill(row.rule, N, 11, row.what);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += value;
      squares += (value - row.mean) * (value - row.mean);
    }
    // Six standard errors.
    EXPECT_NEAR(sum / N, row.mean, 6 * std::sqrt(row.variance / N)) << row.what;
    EXPECT_NEAR(squares / N / row.variance, 1, 0.02) << row.what;
    // Kolmogorov-Smirnov: 1.95 / sqrt(N) is exceeded once in a thousand.
    std::sort(values.begin(), values.end());
    double distance = 0;
    for (int64_t i = 0; i < N; ++i) {
      const double law = row.cdf(values[static_cast<size_t>(i)]);
      distance = std::max(
          {distance, std::abs(law - static_cast<double>(i) / N), std::abs(law - static_cast<double>(i + 1) / N)});
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(N))) << row.what;
  }
}

// What --print-init says of a rule is what its values have.
TEST(FillRule, HasTheMomentsThatAnalysisGives) {
  constexpr int64_t N = 400'000;
  for (const char* text :
       {"normal(0.5, 0.02)", "uniform(-1, 3)", "trunc_normal_sigma(0, 0.03, 3)", "trunc_normal_realised(0, 0.03, 2)",
        "trunc_normal_realised(1, 0.03, 0.5)", "trunc_normal(0, 0.02, 0.01, 2)", "trunc_normal(3, 1, -9, -1)",
        "trunc_normal(0, 0.02, -2, 2)"}) {
    const auto rule = EvaluateRule(ParseExpr(text, ExprKind::Rule).value, {});
    ASSERT_TRUE(rule.ok()) << text;
    const Moments moments = MomentsOf(rule.value);
    double sum = 0;
    double squares = 0;
    for (const float value : Fill(rule.value, N, 5, text)) {
      sum += value - moments.mean;
      squares += (value - moments.mean) * (value - moments.mean);
    }
    // Six standard errors, of the deviation for the heaviest tail among them.
    EXPECT_NEAR(sum / N / moments.std, 0, 6 / std::sqrt(static_cast<double>(N))) << text;
    EXPECT_NEAR(std::sqrt(squares / N) / moments.std, 1, 0.01) << text;
    if (std::string_view(text).starts_with("trunc_normal_realised")) {
      EXPECT_NEAR(moments.std, 0.03, 1e-12) << text;
    }
  }
}

TEST(FillRule, NeighboursAndTensorsAreUncorrelated) {
  constexpr int64_t N = 200'000;
  const std::vector<float> a = Fill({DistributionKind::Normal, {0, 1}}, N + 1, 1, "a");
  const std::vector<float> b = Fill({DistributionKind::Normal, {0, 1}}, N, 1, "b");
  double within = 0;
  double across = 0;
  for (size_t i = 0; i < static_cast<size_t>(N); ++i) {
    within += static_cast<double>(a[i]) * a[i + 1];
    across += static_cast<double>(a[i]) * b[i];
  }
  EXPECT_NEAR(within / N, 0, 6 / std::sqrt(static_cast<double>(N)));
  EXPECT_NEAR(across / N, 0, 6 / std::sqrt(static_cast<double>(N)));
}

TEST(FillRule, BoundsAreKept) {
  // Bounds that no float equals, far tails, and bounds where no probability is left.
  const Distribution rules[] = {
      {DistributionKind::TruncNormal, {0, 1, -0.1, 0.1}},  {DistributionKind::TruncNormal, {0, 1, 7.9, 8.1}},
      {DistributionKind::TruncNormal, {0, 1, -8.1, -7.9}}, {DistributionKind::TruncNormal, {0, 1, 60, 61}},
      {DistributionKind::TruncNormal, {0, 1, -61, -60}},   {DistributionKind::TruncNormal, {100, 1e-3, -1, 1}},
      {DistributionKind::Uniform, {0.1, 0.1000001}},       {DistributionKind::Uniform, {16777216, 16777217.5}},
  };
  for (const Distribution& rule : rules) {
    const double a = rule.arguments[rule.arguments.size() - 2];
    const double b = rule.arguments.back();
    for (const float value : Fill(rule, 20'000)) {
      ASSERT_TRUE(a <= value && value <= b) << ToText(rule) << ": " << value;
    }
  }
}

TEST(LogOf, IsWithinTwoUlp) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        std::ldexp(0.5 + static_cast<double>(random() >> 12) * 0x1p-53, -static_cast<int>(random() % 1000));
    const double expected = std::log(x);
    const double ulp = std::abs(std::nextafter(expected, -std::numeric_limits<double>::infinity()) - expected);
    // The library's own is within one.
    if (x <= 0.5) {
      ASSERT_LE(std::abs(LogOf(x) - expected), 3 * ulp) << x;
    }
  }
}

/// Blocks and single elements, out into the tails and beyond where a double's exponent is at its end.
TEST(NormalQuantileBlock, IsNormalQuantile) {
  BlockOfDoubles p;
  BlockOfDoubles z;
  for (int i = 0; i < InitBlock; ++i) {
    p[static_cast<size_t>(i)] = i % 2 == 0 ? std::ldexp(0.9, -4 * i - i / 8) : 1 - std::ldexp(0.4, -(i % 50));
  }
  p[0] = 0.075;
  p[2] = FarTail;
  p[4] = std::nextafter(FarTail, 0);
  p[6] = 4.9e-324;
  NormalQuantileBlock(p, z);
  for (size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(z[i], NormalQuantile(p[i])) << p[i];
  }
}

TEST(NormalQuantile, InvertsTheCdf) {
  for (double z = -8; z <= 8; z += 0.0625) {
    const double p = z < 0 ? NormalCdf(z) : 1 - NormalCdf(-z);
    if (z <= 0) {
      EXPECT_NEAR(NormalQuantile(p), z, 1e-13 * std::max(1.0, std::abs(z))) << z;
    } else if (z < 5) {
      // 1 - p has lost digits here.
      EXPECT_NEAR(NormalQuantile(p), z, 1e-9) << z;
    }
  }
  EXPECT_EQ(NormalQuantile(0.5), 0);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(NormalQuantile(0x1p-54), -8.292361075813597, 1e-13);
}

// schemas/random.md has these.
TEST(FillRule, KnownValues) {
  const PhiloxKey key = InitKey(1234, "model.norm.weight");
  EXPECT_EQ(key, (PhiloxKey{0xc0dfc3ae, 0x9f9b5805}));
  EXPECT_EQ(InitUniform(key, 0), 0.89165102539443719);
  EXPECT_EQ(InitUniform(key, 1), 0.71096361301884703);
  EXPECT_EQ(InitUniform(key, int64_t{1} << 32), 0.24442206312744613);
  const std::string_view name = "model.norm.weight";
  EXPECT_EQ(Fill(Distribution{DistributionKind::Normal, {0, 0.02}}, 3, 1234, name),
            (std::vector<float>{0.0247071255F, 0.01112404F, 0.0131613351F}));
  EXPECT_EQ(Fill(Distribution{DistributionKind::TruncNormal, {0, 0.02, -0.04, 0.04}}, 3, 1234, name),
            (std::vector<float>{0.0228937604F, 0.0105665922F, 0.012475729F}));
  EXPECT_EQ(Fill(Distribution{DistributionKind::Uniform, {-1, 1}}, 3, 1234, name),
            (std::vector<float>{0.783302069F, 0.421927214F, 0.489504755F}));
}

}  // namespace
}  // namespace shardc
