// Which blocks fractions and predicates choose.
#include "compiler/expr/layer_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

/// "0 3 7", or the errors, each as "name column:length: message".
auto Chosen(std::string_view text, int64_t layers) -> std::string {
  const auto result = ChooseLayers(text, layers, 64);
  std::string list;
  for (const ExprError& error : result.errors) {
    list +=
        fmt::format("{}{} {}:{}: {}", list.empty() ? "" : ", ", error.name, error.column, error.length, error.message);
  }
  for (size_t i = 0; i < result.value.size(); ++i) {
    list += result.value[i] ? fmt::format("{}{}", list.empty() ? "" : " ", i) : "";
  }
  return list;
}

struct ChoiceCase {
  std::string_view text;
  int64_t layers;
  std::string_view chosen;
};

constexpr std::string_view EvenOf80 =
    "0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38 40 42 44 46 48 50 52 54 56 58 60 62 64 66 68 70 72 74 76 "
    "78";

constexpr ChoiceCase ChoiceCases[] = {
    // Fractions, as foundation-model-stack/fms-fsdp spreads them.
    {"1/5", 15, "2 7 12"},
    {"1/3", 15, "1 4 7 10 13"},
    {"1/2", 15, "0 2 4 6 8 10 12 14"},
    {"3/5", 15, "0 2 4 5 7 9 10 12 14"},
    {"2/3", 15, "0 2 3 5 6 8 9 11 12 14"},
    {"0", 15, ""},
    {"1/100", 15, ""},
    {"1", 15, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14"},
    {"1/4", 32, "1 5 9 13 17 21 25 29"},
    {"1/3", 32, "1 4 7 10 13 16 19 22 25 28 31"},
    {"1/2", 80, EvenOf80},
    {"0.3", 16, "1 4 8 11 14"},
    {"3/10", 16, "1 4 8 11 14"},
    // The ways to write one.
    {".5", 4, "0 2"},
    {"0.50", 4, "0 2"},
    {" 1 / 2 ", 4, "0 2"},
    {"2/4", 4, "0 2"},
    {"1.0", 2, "0 1"},
    {"1.", 2, "0 1"},
    {"-0", 2, ""},
    {"0/7", 2, ""},
    {"999999999/999999999", 2, "0 1"},
    {"1/2", 0, ""},
    // Predicates.
    {"true", 3, "0 1 2"},
    {"false", 3, ""},
    {"layer % 3 == 1", 8, "1 4 7"},
    {"layer < layers / 2 or hidden < 64", 5, "0 1 2"},
    {"layer > 1/3", 3, "1 2"},
    // Faults.
    {"5/3", 15, "block-fraction 1:3: `5/3` is more than 1; a fraction of the blocks is from 0 to 1"},
    {" 1.5", 15, "block-fraction 2:3: `1.5` is more than 1; a fraction of the blocks is from 0 to 1"},
    {"-1/3", 15, "block-fraction 1:4: `-1/3` is less than 0; a fraction of the blocks is from 0 to 1"},
    {"1/0", 15, "expr-domain 2:1: division by zero: `0` is 0"},
    {"1/1000000000", 15, "block-fraction 3:10: `1000000000` has more than 9 digits"},
    {"0.123456789", 15, "block-fraction 1:11: `0.123456789` has more than 9 digits"},
    {"3e-1", 15, "expr-type 1:4: a predicate is a condition; `3e-1` is a number"},
    {"0.5/2", 15, "expr-type 1:5: a predicate is a condition; `0.5/2` is a number"},
    {"1/2/3", 15, "expr-type 1:5: a predicate is a condition; `1/2/3` is a number"},
    {"(1/2)", 15, "expr-type 1:5: a predicate is a condition; `(1/2)` is a number"},
    {"1/layers", 15, "expr-type 1:8: a predicate is a condition; `1/layers` is a number"},
    {"1 / (layer - 2) > 0", 4, "expr-domain 3:1: division by zero: `(layer - 2)` is 0 at layer 2"},
    {"", 4, "expr-syntax 1:1: the text is empty; a predicate is expected here"},
};

TEST(LayerChoice, OfFractionsAndPredicates) {
  for (const ChoiceCase& row : ChoiceCases) {
    EXPECT_EQ(Chosen(row.text, row.layers), row.chosen) << row.text << " of " << row.layers;
  }
}

/// The rule in doubles: a block is taken when its multiple of the fraction reaches the next half.
auto ChosenInDoubles(double fraction, int64_t layers) -> std::vector<bool> {
  std::vector<bool> chosen;
  double cutoff = 0.5;
  for (int64_t k = 1; k <= layers; ++k) {
    chosen.push_back(static_cast<double>(k) * fraction >= cutoff);
    cutoff += chosen.back() ? 1 : 0;
  }
  return chosen;
}

/// 45 * 0.7 is less than 31.5 in doubles.
TEST(LayerChoice, SevenTenthsIsExact) {
  for (const int64_t layers : {64, 80}) {
    for (const std::string_view text : {"7/10", "0.7"}) {
      const auto exact = ChooseLayers(text, layers, 64);
      ASSERT_TRUE(exact.ok());
      std::vector<bool> doubles = ChosenInDoubles(0.7, layers);
      EXPECT_TRUE(exact.value[44]);
      EXPECT_FALSE(exact.value[45]);
      EXPECT_FALSE(doubles[44]);
      EXPECT_TRUE(doubles[45]);
      doubles[44] = true;
      doubles[45] = false;
      EXPECT_EQ(exact.value, doubles);
    }
  }
}

/// floor(n p + 1/2) blocks, of which any two ranges of equal length have equally many, or differ by one.
TEST(LayerChoice, FractionsAreSpreadEvenly) {
  for (int64_t denominator = 1; denominator <= 16; ++denominator) {
    for (int64_t numerator = 0; numerator <= denominator; ++numerator) {
      constexpr int64_t layers = 48;
      const auto chosen = ChooseLayers(fmt::format("{}/{}", numerator, denominator), layers, 64);
      ASSERT_TRUE(chosen.ok());
      for (int64_t length = 1; length <= layers; ++length) {
        for (int64_t begin = 0; begin + length <= layers; ++begin) {
          const auto first = chosen.value.begin() + begin;
          const int64_t count = std::count(first, first + length, true);
          EXPECT_LT(std::abs(count * denominator - length * numerator), denominator)
              << numerator << "/" << denominator << ": blocks " << begin << " to " << begin + length;
        }
      }
      EXPECT_EQ(std::count(chosen.value.begin(), chosen.value.end(), true),
                (2 * layers * numerator + denominator) / (2 * denominator));
    }
  }
}

}  // namespace
}  // namespace shardc
