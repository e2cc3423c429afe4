// Rotary frequencies: the library's scalings against formulas of their own, what is refused, and the rows of the table.

#include "compiler/expr/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

auto Reduced(std::string_view text, const ExprVariables& variables) -> Expr {
  const auto parsed = ParseExpr(text, ExprKind::Frequency);
  EXPECT_TRUE(parsed.ok()) << text;
  const auto reduced = ReduceRule(parsed.value, variables);
  EXPECT_TRUE(reduced.ok()) << text;
  return reduced.value;
}

const ExprVariables Llama31{{"rope_theta", 500'000}, {"head_dim", 128}};

// modeling_rope_utils._compute_llama3_parameters, in its own steps.
auto Llama31Frequency(int pair) -> double {
  const double frequency = 1 / std::pow(500'000.0, 2.0 * pair / 128);
  const double wavelength = 2 * M_PI / frequency;
  if (wavelength < 8192.0 / 4) {
    return frequency;
  }
  if (wavelength > 8192.0 / 1) {
    return frequency / 8;
  }
  const double smooth = (8192 / wavelength - 1) / (4 - 1);
  return (1 - smooth) * frequency / 8 + smooth * frequency;
}

TEST(Rotary, Llama3ScalesAsTransformersDoes) {
  const std::vector<double> frequencies = RotaryFrequencies(Reduced("llama3_rope(8, 1, 4, 8192)", Llama31), 64);
  ASSERT_EQ(frequencies.size(), 64U);
  for (int pair = 0; pair < 64; ++pair) {
    EXPECT_NEAR(frequencies[static_cast<size_t>(pair)] / Llama31Frequency(pair), 1, 1e-14) << pair;
  }
  // To 20 digits by mpmath: before, in and after the interpolated range of pairs 29 to 34.
  constexpr std::pair<size_t, double> Golden[] = {
      {0, 1.0},
      {1, 0.8146172338565447041},
      {20, 0.016560440080994445549},
      {29, 0.0021665707635033586093},
      {30, 0.0013718935677611381604},
      {31, 0.00085675141291963208107},
      {32, 0.00052484616099295466973},
      {34, 0.00017850781276799641852},
      {35, 0.000095562123539646830199},
      {63, 3.0689259889145110891e-7},
  };
  for (const auto& [pair, frequency] : Golden) {
    EXPECT_NEAR(frequencies[pair] / frequency, 1, 1e-14) << pair;
  }
}

TEST(Rotary, LinearDrawsPositionsTogether) {
  const std::vector<double> plain = RotaryFrequencies(Reduced("rope_theta ^ (-2 * index(0) / head_dim)", Llama31), 64);
  const std::vector<double> drawn = RotaryFrequencies(Reduced("linear_rope(4)", Llama31), 64);
  std::vector<float> at_3(128);
  std::vector<float> at_12(128);
  WriteRotaryRow(plain, 3, at_3.data());
  WriteRotaryRow(drawn, 12, at_12.data());
  EXPECT_EQ(at_3, at_12);
  for (size_t pair = 0; pair < 64; ++pair) {
    EXPECT_NEAR(plain[pair] * std::pow(500'000.0, static_cast<double>(pair) / 64), 1, 1e-14) << pair;
    EXPECT_EQ(drawn[pair], plain[pair] / 4) << pair;
  }
}

TEST(Rotary, ReducedTextsReadBackToTheSameFrequencies) {
  for (const std::string_view text :
       {"rope_theta ^ (-2 * index(0) / head_dim)", "llama3_rope(8, 1, 4, 8192)", "linear_rope(3)", "0.5",
        "if index(0) < 32 then linear_rope(2) else 1 / (1 + index(0))"}) {
    const Expr reduced = Reduced(text, Llama31);
    const auto again = ReadReducedFrequency(reduced.text());
    ASSERT_TRUE(again.has_value()) << text;
    EXPECT_EQ(again->text(), reduced.text());
    EXPECT_EQ(RotaryFrequencies(*again, 64), RotaryFrequencies(reduced, 64)) << text;
  }
  for (const std::string_view text : {"", "1 +", "rope_theta", "1 / 0", "normal(0, 1)", "index(1)"}) {
    EXPECT_FALSE(ReadReducedFrequency(text).has_value()) << text;
  }
}

TEST(Rotary, FirstFaultNamesItsPair) {
  struct {
    std::string_view text;
    std::string_view fault;
  } const cases[] = {
      {"1 / (1 + index(0))", ""},
      {"0", ""},
      {"1 - index(0) / 2", "of pair 3 is -0.5; a frequency is 0 or more"},
      {"1 / (2 - index(0))", "of pair 2 has no value"},
      {"sqrt(1 - index(0))", "of pair 2 has no value"},
      {"2 ^ 30 / 99", ""},
      {"2 ^ 30 / 98",
       "of pair 0 is 10956549.224489795; position 99 has an angle of 1084698373.2244897 there, and angles "
       "end at 2^30"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_EQ(RotaryFault(Reduced(text, {}), 8, 100), fault) << text;
  }
}

}  // namespace
}  // namespace shardc
