#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "compiler/expr/moments.h"
#include "runtime/init/initial_values.h"
#include "tests/support/rule_value.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

/// Of a vector.
auto Fill(std::string_view rule, int64_t n, uint64_t seed = 1, std::string_view name = "w", int64_t begin = 0)
    -> std::vector<float> {
  static const auto kernels = SharedInitKernels();
  std::vector<float> values(static_cast<size_t>(n));
  InitialValues made(VectorOf(rule, seed, name), NoOthers);
  EXPECT_TRUE(made.Fill({begin, begin + n}, values.data()).ok()) << rule;
  return values;
}

const char* const Rules[] = {
    "0.5",
    "normal(0.25, 2)",
    "trunc_normal(0, 0.02, -0.04, 0.04)",
    "uniform(-1, 3)",
    "let z = normal(0, 1) in z * abs(z) + index(0) / 8 + uniform(0, 1)",
};

TEST(InitialValues, ElementsDoNotDependOnTheInterval) {
  for (const std::string_view rule : Rules) {
    const std::vector<float> whole = Fill(rule, 1000);
    for (const int64_t parts : {1, 2, 3, 4, 7, 512}) {
      std::vector<float> joined(1000);
      for (int64_t part = 0; part < parts; ++part) {
        const Interval own{1000 * part / parts, 1000 * (part + 1) / parts};
        const std::vector<float> part_values = Fill(rule, own.size(), 1, "w", own.begin);
        std::copy(part_values.begin(), part_values.end(), joined.begin() + own.begin);
      }
      EXPECT_EQ(joined, whole) << rule << " in " << parts;
    }
  }
}

TEST(InitialValues, DependsOnSeedNameAndIndex) {
  constexpr std::string_view rule = "uniform(0, 1)";
  const std::vector<float> values = Fill(rule, 1000);
  EXPECT_NE(values, Fill(rule, 1000, 2));
  EXPECT_NE(values, Fill(rule, 1000, 1, "v"));
  EXPECT_NE(values, Fill(rule, 1000, 1, "w", 1000));
  // Beyond 32 bits the index still counts.
  EXPECT_NE(values, Fill(rule, 1000, 1, "w", int64_t{1} << 32));
  EXPECT_EQ(values, Fill(rule, 1000));
}

TEST(InitialValues, ConstantAndEmpty) {
  EXPECT_EQ(Fill("1", 3), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(Fill("normal(0, 1)", 0).empty());
  EXPECT_EQ(Fill("normal(3, 0)", 2), (std::vector<float>{3, 3}));
}

auto NormalCdf(double x) -> double { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct LawCase {
  std::string what;
  std::string_view rule;
  double mean;
  double variance;
  std::function<double(double)> cdf;
};

/// Truncated to [a, b] in units of the standard deviation.
auto TruncCdf(double a, double b) -> std::function<double(double)> {
  return [=](double x) { return (NormalCdf(x) - NormalCdf(a)) / (NormalCdf(b) - NormalCdf(a)); };
}

TEST(InitialValues, FollowsTheLaw) {
  constexpr int64_t N = 200'000;
  // Variance of the standard normal truncated to [-2, 2]: 1 - 4 phi(2) / (2 Phi(2) - 1).
  const LawCase cases[] = {
      {"normal", "normal(0, 1)", 0, 1, NormalCdf},
      {"scaled normal", "normal(5, 0.5)", 5, 0.25, [](double x) { return NormalCdf((x - 5) / 0.5); }},
      {"uniform", "uniform(-2, 4)", 1, 3, [](double x) { return (x + 2) / 6; }},
      {"truncated", "trunc_normal(0, 1, -2, 2)", 0, 0.7737, TruncCdf(-2, 2)},
      {"one-sided", "trunc_normal(0, 1, 1, 9)", 1.5251, 0.1991, TruncCdf(1, 9)},
      {"other side", "trunc_normal(0, 1, -9, -1)", -1.5251, 0.1991, TruncCdf(-9, -1)},
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
TEST(InitialValues, HasTheMomentsThatAnalysisGives) {
  constexpr int64_t N = 400'000;
  for (const char* text :
       {"normal(0.5, 0.02)", "uniform(-1, 3)", "trunc_normal_sigma(0, 0.03, 3)", "trunc_normal_realised(0, 0.03, 2)",
        "trunc_normal_realised(1, 0.03, 0.5)", "trunc_normal(0, 0.02, 0.01, 2)", "trunc_normal(3, 1, -9, -1)",
        "trunc_normal(0, 0.02, -2, 2)"}) {
    const Moments moments = MomentsOf(EvaluateRule(ParseExpr(text, ExprKind::Rule).value, {}).value);
    double sum = 0;
    double squares = 0;
    for (const float value : Fill(text, N, 5, text)) {
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

TEST(InitialValues, NeighboursAndTensorsAreUncorrelated) {
  constexpr int64_t N = 200'000;
  const std::vector<float> a = Fill("normal(0, 1)", N + 1, 1, "a");
  const std::vector<float> b = Fill("normal(0, 1)", N, 1, "b");
  double within = 0;
  double across = 0;
  for (size_t i = 0; i < static_cast<size_t>(N); ++i) {
    within += static_cast<double>(a[i]) * a[i + 1];
    across += static_cast<double>(a[i]) * b[i];
  }
  EXPECT_NEAR(within / N, 0, 6 / std::sqrt(static_cast<double>(N)));
  EXPECT_NEAR(across / N, 0, 6 / std::sqrt(static_cast<double>(N)));
}

TEST(InitialValues, BoundsAreKept) {
  // Bounds that no float equals, far tails, and bounds where no probability is left.
  const char* const rules[] = {
      "trunc_normal(0, 1, -0.1, 0.1)", "trunc_normal(0, 1, 7.9, 8.1)",  "trunc_normal(0, 1, -8.1, -7.9)",
      "trunc_normal(0, 1, 60, 61)",    "trunc_normal(0, 1, -61, -60)",  "trunc_normal(100, 1e-3, -1, 1)",
      "uniform(0.1, 0.1000001)",       "uniform(16777216, 16777217.5)",
  };
  for (const std::string_view rule : rules) {
    const Distribution law = DistributionOf(ParseExpr(rule, ExprKind::Rule).value).value();
    const double a = law.arguments[law.arguments.size() - 2];
    const double b = law.arguments.back();
    for (const float value : Fill(rule, 20'000)) {
      ASSERT_TRUE(a <= value && value <= b) << rule << ": " << value;
    }
  }
}

}  // namespace
}  // namespace shardc
