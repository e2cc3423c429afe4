// What is drawn is what the rules say, and nothing in it repeats: the same checks over 200 seeds of each law, and over
// series that are wrong in one way each, which they have to refuse.
//
// Seeds are fixed, so that a run tells the same as the one before. A limit is given in standard errors, or as the
// probability that a sound stream goes beyond it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "runtime/init/initial_values.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

constexpr int64_t NumSeeds = 200;
constexpr int64_t NumDrawn = 4096;

using Series = std::vector<float>;
/// What is drawn with a seed.
using Source = std::function<Series(uint64_t seed)>;

/// The only place that draws: `n` elements of a parameter from `begin` on.
auto Draw(const std::string& rule, int64_t n, uint64_t seed, std::string_view name = "w", int64_t begin = 0) -> Series {
  static const auto kernels = SharedInitKernels();
  Series series(static_cast<size_t>(n));
  InitialValues values(VectorOf(rule, seed, name), NoOthers);
  CHECK(values.Fill({begin, begin + n}, series.data()).ok(), "{}", rule);
  return series;
}

auto SourceOf(const std::string& rule, const std::string& name = "w", int64_t begin = 0) -> Source {
  return [=](uint64_t seed) { return Draw(rule, NumDrawn, seed, name, begin); };
}

auto Map(const Source& source, const std::function<double(double)>& function) -> Source {
  return [=](uint64_t seed) {
    Series series = source(seed);
    std::ranges::transform(series, series.begin(), [&](float x) { return static_cast<float>(function(x)); });
    return series;
  };
}

/// By density, up to a factor, on an interval: mean, deviation and all else are integrals of it.
struct Law {
  std::string rule;
  double low;
  double high;
  std::function<double(double)> density;
};

auto NormalDensity(double mean, double std) -> std::function<double(double)> {
  return [=](double x) { return std::exp(-(x - mean) * (x - mean) / (2 * std * std)); };
}

auto Laws() -> const std::vector<Law>& {
  static const std::vector<Law> laws{
      {"normal(0.5, 2)", 0.5 - 2 * 9, 0.5 + 2 * 9, NormalDensity(0.5, 2)},
      {"uniform(-1, 3)", -1, 3, [](double) { return 1; }},
      {"trunc_normal(0, 0.02, -0.04, 0.04)", -0.04, 0.04, NormalDensity(0, 0.02)},
      {"trunc_normal(0.1, 1, -0.5, 2)", -0.5, 2, NormalDensity(0.1, 1)},
      {"trunc_normal(0, 1, 2, 9)", 2, 9, NormalDensity(0, 1)},
  };
  return laws;
}

/// The distribution function as a table, and moments, by Simpson's rule.
class Analysis {
 public:
  explicit Analysis(const Law& law) : law_(law), step_((law.high - law.low) / NumCells) {
    cumulated_.push_back(0);
    for (int64_t i = 0; i < NumCells; ++i) {
      cumulated_.push_back(cumulated_.back() + Cell(i, law.density));
    }
    mean_ = Mean([](double x) { return x; });
    std_ = std::sqrt(Mean([&](double x) { return (x - mean_) * (x - mean_); }));
  }

  auto Cdf(double x) const -> double {
    const double at = std::clamp((x - law_.low) / step_, 0.0, static_cast<double>(NumCells));
    const auto cell = std::min(static_cast<int64_t>(at), NumCells - 1);
    const auto i = static_cast<size_t>(cell);
    return std::lerp(cumulated_[i], cumulated_[i + 1], at - static_cast<double>(cell)) / cumulated_.back();
  }
  auto Mean(const std::function<double(double)>& function) const -> double {
    double sum = 0;
    for (int64_t i = 0; i < NumCells; ++i) {
      sum += Cell(i, [&](double x) { return function(x) * law_.density(x); });
    }
    return sum / cumulated_.back();
  }
  /// In deviations from the mean.
  auto Standardized(double x) const -> double { return (x - mean_) / std_; }
  /// The mean of its power.
  auto Moment(int power) const -> double {
    return Mean([&](double x) { return std::pow(Standardized(x), power); });
  }
  auto mean() const -> double { return mean_; }
  auto std() const -> double { return std_; }

 private:
  static constexpr int64_t NumCells = 20'000;

  auto Cell(int64_t i, const std::function<double(double)>& function) const -> double {
    const double begin = law_.low + static_cast<double>(i) * step_;
    return (function(begin) + 4 * function(begin + step_ / 2) + function(begin + step_)) * step_ / 6;
  }

  const Law& law_;
  double step_;
  std::vector<double> cumulated_;
  double mean_ = 0;
  double std_ = 0;
};

/// Kolmogorov's distance of numbers from a distribution function.
auto DistanceFrom(std::vector<double> numbers, const std::function<double(double)>& cdf) -> double {
  std::sort(numbers.begin(), numbers.end());
  const auto n = static_cast<double>(numbers.size());
  double distance = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double at = cdf(numbers[i]);
    distance = std::max({distance, at - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - at});
  }
  return distance;
}

/// The probability of a distance at least so large of n numbers, by Kolmogorov's series with Stephens' correction.
auto PValueOf(double distance, int64_t n) -> double {
  const double root = std::sqrt(static_cast<double>(n));
  const double x = (root + 0.12 + 0.11 / root) * distance;
  // The series converges badly where the probability is 1 to many digits.
  if (x < 0.2) {
    return 1;
  }
  double p = 0;
  for (int k = 1; k <= 100; ++k) {
    p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  }
  return std::clamp(p, 0.0, 1.0);
}

// The p-values of the seeds are uniform themselves, neither too small (another law) nor too large (values spread more
// evenly than chance does). Goes beyond the limit once in 15,000.
auto LawIsFollowed(const Law& law, const Source& source) -> bool {
  const Analysis analysis(law);
  std::vector<double> p_values;
  for (uint64_t seed = 1; seed <= NumSeeds; ++seed) {
    const Series series = source(seed);
    p_values.push_back(PValueOf(DistanceFrom({series.begin(), series.end()}, [&](double x) { return analysis.Cdf(x); }),
                                std::ssize(series)));
  }
  return PValueOf(DistanceFrom(p_values, [](double p) { return p; }), NumSeeds) > 1.0 / 15'000;
}

TEST(InitStatistics, PValuesOf200SeedsAreUniform) {
  for (const Law& law : Laws()) {
    EXPECT_TRUE(LawIsFollowed(law, SourceOf(law.rule))) << law.rule;
  }
}

TEST(InitStatistics, OtherLawsAreNotFollowed) {
  for (const Law& law : Laws()) {
    const Analysis analysis(law);
    // Moved by a twentieth of the deviation; wider by one.
    EXPECT_FALSE(LawIsFollowed(law, Map(SourceOf(law.rule), [&](double x) { return x + analysis.std() / 20; })))
        << law.rule;
    EXPECT_FALSE(LawIsFollowed(
        law, Map(SourceOf(law.rule), [&](double x) { return analysis.mean() + (x - analysis.mean()) * 1.05; })))
        << law.rule;
    // Half of the elements repeat the other half.
    EXPECT_FALSE(LawIsFollowed(law, [&](uint64_t seed) {
      Series series = Draw(law.rule, NumDrawn / 2, seed);
      series.reserve(static_cast<size_t>(NumDrawn));
      series.insert(series.end(), series.begin(), series.begin() + NumDrawn / 2);
      return series;
    })) << law.rule;
  }
  // As even as can be.
  EXPECT_FALSE(LawIsFollowed(Laws()[1], [](uint64_t) {
    Series series;
    for (int64_t i = 0; i < NumDrawn; ++i) {
      series.push_back(static_cast<float>(-1 + 4 * (static_cast<double>(i) + 0.5) / NumDrawn));
    }
    return series;
  }));
}

constexpr double MostStandardErrors = 5;

/// How far the mean of the standardized elements' power, over all seeds, is from the law's, in standard errors.
auto MomentIsOffBy(const Law& law, int power, const Source& source) -> double {
  const Analysis analysis(law);
  double sum = 0;
  int64_t count = 0;
  for (uint64_t seed = 1; seed <= NumSeeds; ++seed) {
    for (const float x : source(seed)) {
      sum += std::pow(analysis.Standardized(x), power);
      ++count;
    }
  }
  const double expected = analysis.Moment(power);
  const double variance = analysis.Moment(2 * power) - expected * expected;
  return std::abs(sum / static_cast<double>(count) - expected) / std::sqrt(variance / static_cast<double>(count));
}

TEST(InitStatistics, FirstFourMoments) {
  for (const Law& law : Laws()) {
    for (int power = 1; power <= 4; ++power) {
      EXPECT_LT(MomentIsOffBy(law, power, SourceOf(law.rule)), MostStandardErrors) << law.rule << ", " << power;
    }
  }
}

TEST(InitStatistics, OtherMomentsAreFound) {
  const Law& normal = Laws()[0];
  /// With the mean and deviation of the normal law.
  const auto alike = [&](const Law& law) {
    const Analysis analysis(law);
    return Map(SourceOf(law.rule), [=](double x) { return 0.5 + 2 * (x - analysis.mean()) / analysis.std(); });
  };
  const Source drawn = SourceOf(normal.rule);
  EXPECT_GT(MomentIsOffBy(normal, 1, Map(drawn, [](double x) { return x + 0.02; })), MostStandardErrors);
  EXPECT_GT(MomentIsOffBy(normal, 2, Map(drawn, [](double x) { return x * 1.01; })), MostStandardErrors);
  const Law& tail = Laws()[4];
  EXPECT_LT(MomentIsOffBy(normal, 1, alike(tail)), MostStandardErrors);
  EXPECT_GT(MomentIsOffBy(normal, 3, alike(tail)), MostStandardErrors);
  const Law& uniform = Laws()[1];
  EXPECT_LT(MomentIsOffBy(normal, 3, alike(uniform)), MostStandardErrors);
  EXPECT_GT(MomentIsOffBy(normal, 4, alike(uniform)), MostStandardErrors);
}

/// Elements beyond the bounds, of all seeds.
auto NumOutside(const Law& law, const Source& source) -> int64_t {
  int64_t count = 0;
  for (uint64_t seed = 1; seed <= NumSeeds; ++seed) {
    count += std::ranges::count_if(source(seed), [&](float x) { return !(law.low <= x && x <= law.high); });
  }
  return count;
}

TEST(InitStatistics, BoundsAreNeverCrossed) {
  for (const Law& law : Laws()) {
    EXPECT_EQ(NumOutside(law, SourceOf(law.rule)), 0) << law.rule;
  }
  EXPECT_GT(NumOutside(Laws()[2], SourceOf("normal(0, 0.02)")), 0);
  // By a hundredth of the deviation, at one end.
  EXPECT_GT(NumOutside(Laws()[4], Map(SourceOf(Laws()[4].rule), [](double x) { return x - 0.01; })), 0);
}

/// Pairs of elements that lie one of `lags` apart in two series: the correlation over all seeds, and that of their
/// squares, in standard errors; the greatest of all.
auto GreatestCorrelation(const Law& law, const Source& first, const Source& second, const std::vector<int64_t>& lags)
    -> double {
  struct Sums {
    double products = 0;
    double square_products = 0;
    int64_t count = 0;
  };
  const Analysis analysis(law);
  const double square_std = std::sqrt(analysis.Moment(4) - 1);
  const auto standardized = [&](const Series& series) {
    std::vector<double> z;
    std::ranges::transform(series, std::back_inserter(z), [&](float x) { return analysis.Standardized(x); });
    return z;
  };
  std::vector<Sums> sums(lags.size());
  for (uint64_t seed = 1; seed <= NumSeeds; ++seed) {
    const std::vector<double> a = standardized(first(seed));
    const std::vector<double> b = standardized(second(seed));
    for (size_t k = 0; k < lags.size(); ++k) {
      for (int64_t i = std::max<int64_t>(0, -lags[k]); i < std::min(std::ssize(a), std::ssize(b) - lags[k]); ++i) {
        const double x = a[static_cast<size_t>(i)];
        const double y = b[static_cast<size_t>(i + lags[k])];
        sums[k].products += x * y;
        sums[k].square_products += (x * x - 1) / square_std * ((y * y - 1) / square_std);
        ++sums[k].count;
      }
    }
  }
  double greatest = 0;
  for (const auto& [products, square_products, count] : sums) {
    greatest = std::max(
        greatest, std::max(std::abs(products), std::abs(square_products)) / std::sqrt(static_cast<double>(count)));
  }
  return greatest;
}

/// Of two series, as they stand or one after the other, up to two blocks of the generator.
auto CorrelationBetween(const Law& law, const Source& first, const Source& second) -> double {
  return GreatestCorrelation(law, first, second, {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8});
}

/// Of one series with itself: neighbours, and what two or four ranks would have in the same place.
auto CorrelationWithin(const Law& law, const Source& source) -> double {
  return GreatestCorrelation(law, source, source, {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, NumDrawn / 4, NumDrawn / 2});
}

TEST(InitStatistics, NeighboursAreUncorrelated) {
  for (const Law& law : {Laws()[0], Laws()[4]}) {
    EXPECT_LT(CorrelationWithin(law, SourceOf(law.rule)), MostStandardErrors) << law.rule;
  }
  const Law& law = Laws()[0];
  const double mean = 0.5;
  // A hundredth of the one before in each element.
  EXPECT_GT(CorrelationWithin(law,
                              [&](uint64_t seed) {
                                Series series = Draw(law.rule, NumDrawn, seed);
                                for (size_t i = series.size() - 1; i > 0; --i) {
                                  series[i] += static_cast<float>(0.01 * (series[i - 1] - mean));
                                }
                                return series;
                              }),
            MostStandardErrors);
  // The second rank of two, or of four, draws what the first one draws.
  for (const size_t shard : {NumDrawn / 2, NumDrawn / 4}) {
    EXPECT_GT(CorrelationWithin(law,
                                [&](uint64_t seed) {
                                  Series series = Draw(law.rule, NumDrawn, seed);
                                  std::copy_n(series.begin(), shard,
                                              series.begin() + static_cast<std::ptrdiff_t>(shard));
                                  return series;
                                }),
              MostStandardErrors);
  }
  // The same elements with other signs.
  EXPECT_GT(CorrelationWithin(law,
                              [&](uint64_t seed) {
                                Series series = Draw(law.rule, NumDrawn, seed);
                                for (size_t i = 1; i < series.size(); i += 2) {
                                  series[i] =
                                      static_cast<float>(mean + (seed % 2 == 0 ? 1 : -1) * (series[i - 1] - mean));
                                }
                                return series;
                              }),
            MostStandardErrors);
}

TEST(InitStatistics, LayersShardsAndSeedsAreUncorrelated) {
  const std::string layer_0 = "model.layers.0.mlp.up_proj.weight";
  const std::string layer_1 = "model.layers.1.mlp.up_proj.weight";
  const auto of_next_seed = [](const Source& source) { return [=](uint64_t seed) { return source(seed + 1); }; };
  for (const Law& law : {Laws()[0], Laws()[4]}) {
    const Source first = SourceOf(law.rule, layer_0);
    EXPECT_LT(CorrelationBetween(law, first, SourceOf(law.rule, layer_1)), MostStandardErrors) << law.rule;
    EXPECT_LT(CorrelationBetween(law, first, SourceOf(law.rule, layer_0, NumDrawn)), MostStandardErrors) << law.rule;
    EXPECT_LT(CorrelationBetween(law, first, SourceOf(law.rule, layer_0, int64_t{1} << 32)), MostStandardErrors)
        << law.rule;
    EXPECT_LT(CorrelationBetween(law, first, of_next_seed(first)), MostStandardErrors) << law.rule;
  }
  const Law& law = Laws()[0];
  const Source first = SourceOf(law.rule, layer_0);
  // Every layer alike; the same stream begun one element later, or a block; a hundredth of the other in each element.
  EXPECT_GT(CorrelationBetween(law, first, first), MostStandardErrors);
  EXPECT_GT(CorrelationBetween(law, first, SourceOf(law.rule, layer_0, 1)), MostStandardErrors);
  EXPECT_GT(CorrelationBetween(law, first, SourceOf(law.rule, layer_0, 4)), MostStandardErrors);
  EXPECT_GT(CorrelationBetween(law, first,
                               [&](uint64_t seed) {
                                 Series series = Draw(law.rule, NumDrawn, seed, layer_1);
                                 const Series other = first(seed);
                                 for (size_t i = 0; i < series.size(); ++i) {
                                   series[i] += static_cast<float>(0.01 * (other[i] - 0.5));
                                 }
                                 return series;
                               }),
            MostStandardErrors);
}

}  // namespace
}  // namespace shardc
