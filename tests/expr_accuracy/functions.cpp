// The functions that C++ computes, against MPFR at random points: each is off by no more than its row of
// schemas/init_functions.def promises, and the promise is not four times what is measured.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <vector>

#include "compiler/expr/names.h"
#include "tests/expr_accuracy/real.h"

namespace shardc {
namespace {

struct Point {
  double x = 0;
  double y = 0;
};

class Sample {
 public:
  auto Even(double low, double high) -> double {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  auto Scale(double low, double high) -> double { return std::exp2(Even(low, high)); }
  auto SignedScale(double low, double high) -> double { return Sign() * Scale(low, high); }
  auto Sign() -> double { return random_() % 2 == 0 ? 1 : -1; }

 private:
  std::mt19937_64 random_;
};

struct AccuracyCase {
  std::string_view function;
  int log2_num_points;
  auto(*ulps_off)(Point point, double value) -> double;
  /// Points in turn by each.
  std::vector<auto(*)(Sample& sample)->Point> samples;
};

/// Of a function of MPFR.
template <class Oracle>
auto OffBy(Point point, double value, const Oracle& oracle) -> double {
  static Real x;
  static Real y;
  static Real expected;
  x.Set(point.x);
  y.Set(point.y);
  oracle(expected.get(), x.get(), y.get());
  return UlpsOff(value, expected);
}

#define UNARY(mpfr_function)                                                                                      \
  [](Point point, double value) {                                                                                 \
    return OffBy(point, value, [](mpfr_ptr to, mpfr_srcptr x, mpfr_srcptr) { mpfr_function(to, x, MPFR_RNDN); }); \
  }
#define BINARY(mpfr_function)                                                                                          \
  [](Point point, double value) {                                                                                      \
    return OffBy(point, value, [](mpfr_ptr to, mpfr_srcptr x, mpfr_srcptr y) { mpfr_function(to, x, y, MPFR_RNDN); }); \
  }
#define ROUNDING(mpfr_function)                                                                        \
  [](Point point, double value) {                                                                      \
    return OffBy(point, value, [](mpfr_ptr to, mpfr_srcptr x, mpfr_srcptr) { mpfr_function(to, x); }); \
  }

/// MPFR has no erfinv: by how far erf of the value misses x, over erf's slope there.
auto ErfInvOffBy(Point point, double value) -> double {
  static Real x;
  static Real missed;
  x.Set(value);
  mpfr_erf(missed.get(), x.get(), MPFR_RNDN);
  mpfr_sub_d(missed.get(), missed.get(), point.x, MPFR_RNDN);
  return std::abs(missed.ToDouble() / (M_2_SQRTPI * std::exp(-value * value)) / UlpOf(value));
}

/// A power of x that is no more than a little out of range.
auto PowerOf(Sample& sample, double x) -> Point { return {x, sample.Even(-1080, 1080) / std::log2(std::abs(x))}; }

const std::vector<AccuracyCase> AccuracyCases{
    {"min", 10, BINARY(mpfr_min), {[](Sample& s) {
       return Point{s.SignedScale(-9, 9), s.SignedScale(-9, 9)};
     }}},
    {"max", 10, BINARY(mpfr_max), {[](Sample& s) {
       return Point{s.SignedScale(-9, 9), s.SignedScale(-9, 9)};
     }}},
    {"abs", 10, UNARY(mpfr_abs), {[](Sample& s) { return Point{s.SignedScale(-1074, 1023)}; }}},
    {"floor", 10, ROUNDING(mpfr_floor), {[](Sample& s) { return Point{s.SignedScale(-4, 60)}; }}},
    {"ceil", 10, ROUNDING(mpfr_ceil), {[](Sample& s) { return Point{s.SignedScale(-4, 60)}; }}},
    {"sqrt", 14, UNARY(mpfr_sqrt), {[](Sample& s) { return Point{s.Scale(-1074, 1023)}; }}},
    {"pow",
     16,
     BINARY(mpfr_pow),
     {[](Sample& s) {
        return Point{s.Scale(-10, 10), s.Even(-10, 10)};
      },
      [](Sample& s) { return PowerOf(s, s.Scale(-1022, 1023)); },
      [](Sample& s) { return PowerOf(s, 1 + s.SignedScale(-50, -2)); },
      // Subnormal x; whole powers; all sizes of both.
      [](Sample& s) {
        return Point{s.Scale(-1074, -1022), s.Even(-1, 1)};
      },
      [](Sample& s) {
        return Point{s.SignedScale(-6, 6), std::floor(s.Even(-150, 150))};
      },
      [](Sample& s) {
        return Point{s.Scale(-1074, 1023), s.SignedScale(-1074, 1023)};
      }}},
    {"exp",
     17,
     UNARY(mpfr_exp),
     {[](Sample& s) { return Point{s.Even(-708, 710)}; }, [](Sample& s) { return Point{s.Even(-1, 1)}; },
      [](Sample& s) { return Point{s.SignedScale(-1074, 3)}; }, [](Sample& s) { return Point{s.Even(-746, -708)}; }}},
    {"log",
     17,
     UNARY(mpfr_log),
     {[](Sample& s) { return Point{s.Scale(-1074, 1023)}; }, [](Sample& s) { return Point{s.Even(0.25, 4)}; },
      [](Sample& s) { return Point{1 + s.SignedScale(-53, -2)}; }}},
    {"sin",
     17,
     UNARY(mpfr_sin),
     {[](Sample& s) { return Point{s.Even(-10, 10)}; }, [](Sample& s) { return Point{s.SignedScale(-1074, 30)}; },
      [](Sample& s) { return Point{s.SignedScale(0, 30)}; },
      [](Sample& s) { return Point{std::floor(s.Scale(0, 28)) * M_PI}; }}},
    {"cos",
     17,
     UNARY(mpfr_cos),
     {[](Sample& s) { return Point{s.Even(-10, 10)}; }, [](Sample& s) { return Point{s.SignedScale(-30, 30)}; },
      [](Sample& s) { return Point{s.SignedScale(0, 30)}; },
      [](Sample& s) { return Point{(std::floor(s.Scale(0, 28)) - 0.5) * M_PI}; }}},
    {"tanh",
     17,
     UNARY(mpfr_tanh),
     {[](Sample& s) { return Point{s.Even(-3, 3)}; }, [](Sample& s) { return Point{s.SignedScale(-6, 6)}; },
      [](Sample& s) { return Point{s.SignedScale(-1074, 1023)}; }}},
    {"erf",
     15,
     UNARY(mpfr_erf),
     {[](Sample& s) { return Point{s.Even(-1, 1)}; }, [](Sample& s) { return Point{s.SignedScale(0, 3)}; },
      [](Sample& s) { return Point{s.SignedScale(-1022, 0)}; }}},
    {"erfinv",
     15,
     ErfInvOffBy,
     {[](Sample& s) { return Point{s.Even(-1, 1)}; }, [](Sample& s) { return Point{s.SignedScale(-1020, 0)}; },
      [](Sample& s) { return Point{s.Sign() * (1 - s.Scale(-53, -1))}; }}},
};

TEST(ExprAccuracy, FunctionsAreAsExactAsTheirRowsSay) {
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    if (row.error.empty()) {
      continue;
    }
    const auto found = std::find_if(AccuracyCases.begin(), AccuracyCases.end(),
                                    [&](const AccuracyCase& other) { return other.function == row.name; });
    ASSERT_NE(found, AccuracyCases.end()) << row.name << " has no case in AccuracyCases";
    Sample sample;
    double most = 0;
    Point at;
    for (size_t i = 0; i < size_t{1} << found->log2_num_points; ++i) {
      const Point point = found->samples[i % found->samples.size()](sample);
      const std::array<double, 2> arguments{point.x, point.y};
      const auto value = row.evaluate(std::span(arguments).first(static_cast<size_t>(row.num_parameters())));
      ASSERT_TRUE(value) << row.name << " of " << point.x << ", " << point.y;
      const double off = found->ulps_off(point, *value);
      if (!(off <= most)) {
        most = off;
        at = point;
      }
    }
    double promised = 0;
    std::from_chars(row.error.data(), row.error.data() + row.error.size(), promised);
    const std::string text =
        fmt::format("{}: {:.3f} ulp at {}, {}; {} promised", row.name, most, at.x, at.y, row.error);
    EXPECT_LE(most, promised) << text;
    EXPECT_GE(most, promised / 4) << text;
    RecordProperty(std::string(row.name), text);
  }
}

}  // namespace
}  // namespace shardc
