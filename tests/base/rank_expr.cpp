// Rank expressions: text both ways, and values.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "compiler/mesh/rank_expr.h"

namespace shardc {
namespace {

constexpr int64_t Least = std::numeric_limits<int64_t>::min();
constexpr int64_t Most = std::numeric_limits<int64_t>::max();

struct TextCase {
  RankExpr expr;
  std::string_view text;
};

TEST(RankExpr, TextReadsBack) {
  const TextCase cases[] = {
      {RankExpr::Constant(0), "0"},
      {RankExpr::Constant(7), "7"},
      {RankExpr::Constant(Least), "-9223372036854775808"},
      {RankExpr::Constant(Most), "9223372036854775807"},
      {{.base = 64, .axis = {0, 128, 0}, .repeat = 3}, "64+128*dp+3*repeat"},
      {{.axis = {1, -2, 3}, .repeat = -4, .step = 5}, "1*replicate-2*dp+3*tp-4*repeat+5*step"},
      {{.axis = {Least, Most, 0}}, "-9223372036854775808*replicate+9223372036854775807*dp"},
      {{.base = Most, .axis = {Least, Least, Least}, .repeat = Least, .step = Most},
       "9223372036854775807-9223372036854775808*replicate-9223372036854775808*dp-9223372036854775808*tp"
       "-9223372036854775808*repeat+9223372036854775807*step"},
      {{.axis = {0, 0, 0, 512}}, "512*dp_inner"},
      {{.axis = {0, 1, 2, -3}, .repeat = 4}, "1*dp+2*tp-3*dp_inner+4*repeat"},
      {{.axis = {0, 1, 0}, .clamp = Interval{0, 9}}, "clamp(1*dp,0,9)"},
      {{.clamp = Interval{Least, Most}}, "clamp(0,-9223372036854775808,9223372036854775807)"},
      {{.axis = {0, 1, 0}, .equals = 2}, "equal(1*dp,2)"},
      {{.base = -3, .clamp = Interval{-5, 5}, .equals = Least}, "equal(clamp(-3,-5,5),-9223372036854775808)"},
  };
  for (const TextCase& row : cases) {
    EXPECT_EQ(ToText(row.expr), row.text);
    const auto read = RankExprFromText(row.text);
    ASSERT_TRUE(read.ok()) << row.text;
    EXPECT_EQ(*read, row.expr) << row.text;
  }
}

TEST(RankExpr, RandomTextReadsBack) {
  std::mt19937_64 random(1);
  const auto number = [&]() -> int64_t {
    switch (random() % 5) {
      case 0: return 0;
      case 1: return Least;
      case 2: return Most;
      case 3: return static_cast<int64_t>(random() % 7) - 3;
      default: return static_cast<int64_t>(random());
    }
  };
  for (int i = 0; i < 10'000; ++i) {
    RankExpr expr{
        .base = number(), .axis = {number(), number(), number(), number()}, .repeat = number(), .step = number()};
    if (random() % 2 == 0) {
      const auto [low, high] = std::minmax({number(), number()});
      expr.clamp = Interval{low, high};
    }
    if (random() % 2 == 0) {
      expr.equals = number();
    }
    const auto read = RankExprFromText(ToText(expr));
    ASSERT_TRUE(read.ok()) << ToText(expr);
    ASSERT_EQ(*read, expr) << ToText(expr);
  }
}

TEST(RankExpr, RefusesOtherTexts) {
  for (const std::string_view text : {"",
                                      "x",
                                      "1*pp",
                                      "1*",
                                      "*dp",
                                      "dp",
                                      "1 + 2",
                                      "1*dp+",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "clamp(1)",
                                      "clamp(1,2)",
                                      "clamp(1,2,3",
                                      "clamp(1,3,2)",
                                      "clamp(1,2,3)x",
                                      "clamp(,1,2)",
                                      "equal(1)",
                                      "equal(1,2",
                                      "equal(1,2))",
                                      "equal(clamp(1,2,3),4",
                                      "1,2",
                                      "1)",
                                      "1.5",
                                      "0x1"}) {
    EXPECT_FALSE(RankExprFromText(text).ok()) << text;
  }
}

struct ValueCase {
  std::string_view text;
  RankPoint point;
  int64_t value;
};

constexpr ValueCase ValueCases[] = {
    {"7", {}, 7},
    {"64+128*dp+3*repeat", {.coordinates = {0, 2, 0}, .repeat = 5}, 335},
    {"1*replicate+10*dp+100*tp+1000*repeat+10000*step", {.coordinates = {1, 2, 3}, .repeat = 4, .step = 5}, 54321},
    {"8+512*dp_inner", {.coordinates = {0, 3, 0, 1}}, 520},
    {"clamp(10*dp,5,15)", {.coordinates = {0, 0, 0}}, 5},
    {"clamp(10*dp,5,15)", {.coordinates = {0, 1, 0}}, 10},
    {"clamp(10*dp,5,15)", {.coordinates = {0, 2, 0}}, 15},
    {"equal(1*dp,2)", {.coordinates = {0, 2, 0}}, 1},
    {"equal(1*dp,2)", {.coordinates = {0, 1, 0}}, 0},
    {"equal(clamp(1*dp,0,1),1)", {.coordinates = {0, 7, 0}}, 1},
};

TEST(RankExpr, Evaluate) {
  for (const ValueCase& row : ValueCases) {
    const auto expr = RankExprFromText(row.text);
    ASSERT_TRUE(expr.ok()) << row.text;
    EXPECT_EQ(expr->Evaluate(row.point), row.value) << row.text;
  }
}

TEST(RankExpr, ConstantAndPlus) {
  EXPECT_TRUE(RankExpr::Constant(3).is_constant());
  EXPECT_FALSE(RankExprFromText("1*dp")->is_constant());
  EXPECT_EQ(ToText(RankExprFromText("1*dp")->Plus(5)), "5+1*dp");
}

TEST(RankExprDeathTest, AClampCannotBeShifted) {
  EXPECT_EXIT(RankExprFromText("clamp(1*dp,0,9)")->Plus(1), testing::ExitedWithCode(1), "cannot shift clamp");
}

}  // namespace
}  // namespace shardc
