// Hostile texts: nesting, length, garbage. None crashes, each is refused by a named error or has a value.

#include <gtest/gtest.h>

#include <random>

#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

auto Repeat(std::string_view text, int count) -> std::string {
  std::string result;
  for (int i = 0; i < count; ++i) {
    result += text;
  }
  return result;
}

struct NestingCase {
  std::string_view before;
  std::string_view middle;
  std::string_view after;
  ExprKind kind = ExprKind::Rule;
};

// Each adds one level a repetition.
constexpr NestingCase NestingCases[] = {
    {"(", "1", ")"},
    {"-", "1", ""},
    {"1^", "1", ""},
    {"sqrt(", "1", ")"},
    {"if true then 1 else ", "1", ""},
    {"if true then ", "1", " else 1"},
    {"if ", "true", " then true else true", ExprKind::Predicate},
    {"not ", "true", "", ExprKind::Predicate},
    {"1 + (", "1", ")"},
    {"max(1, ", "1", ")"},
    {"let a = ", "1", " in a"},
    {"clamp(", "1", ", 0, 1)"},
};

TEST(ExprLimits, NestingEndsAtTheLimitWithOneError) {
  for (const NestingCase& row : NestingCases) {
    const auto parse = [&](int depth) {
      return ParseExpr(Repeat(row.before, depth) + std::string(row.middle) + Repeat(row.after, depth), row.kind);
    };
    EXPECT_TRUE(parse(MaxExprDepth).ok()) << row.before;
    const auto refused = parse(MaxExprDepth + 1);
    ASSERT_EQ(refused.errors.size(), 1U) << row.before;
    EXPECT_EQ(refused.errors[0].name, "expr-syntax") << row.before;
    EXPECT_EQ(refused.errors[0].message, "nested more than 200 levels deep") << row.before;
  }
}

TEST(ExprLimits, NestingBombsAreRefused) {
  for (const NestingCase& row : NestingCases) {
    const int depth = static_cast<int>(MaxExprBytes / (row.before.size() + row.after.size() + 1));
    const std::string balanced = Repeat(row.before, depth) + std::string(row.middle) + Repeat(row.after, depth);
    EXPECT_FALSE(ParseExpr(balanced, row.kind).ok()) << row.before;
    EXPECT_FALSE(ParseExpr(Repeat(row.before, depth), row.kind).ok()) << row.before;
  }
}

TEST(ExprLimits, LongChainsAreNoNesting) {
  const int count = 20'000;
  EXPECT_EQ(ValueOrErrors("1" + Repeat("+1", count), ExprKind::Rule), "20001");
  EXPECT_EQ(ValueOrErrors("1" + Repeat("-1", count), ExprKind::Rule), "-19999");
  EXPECT_EQ(ValueOrErrors("1" + Repeat("*1", count), ExprKind::Rule), "1");
  EXPECT_EQ(ValueOrErrors("true" + Repeat(" and true", 5000), ExprKind::Predicate), "true");
  EXPECT_EQ(ValueOrErrors("false" + Repeat(" or false", 5000), ExprKind::Predicate), "false");
}

TEST(ExprLimits, LengthEndsAtTheLimit) {
  const auto spaces = static_cast<int>(MaxExprBytes) - 1;
  EXPECT_TRUE(ParseExpr(Repeat(" ", spaces) + "1", ExprKind::Rule).ok());
  const auto refused = ParseExpr(Repeat(" ", spaces) + "12", ExprKind::Rule);
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].name, "expr-syntax");
  EXPECT_EQ(refused.errors[0].message, "the text has 65537 bytes; the limit is 65536");
  EXPECT_EQ(refused.errors[0].column, 65537);
  EXPECT_FALSE(ParseExpr(Repeat("x", 10'000'000), ExprKind::Rule).ok());
}

TEST(ExprLimits, CallsOfLibraryFunctionsEndAtTheLimit) {
  const std::string call = "+trunc_factor(1)";
  EXPECT_EQ(ValueOrErrors("0" + Repeat(call + "-trunc_factor(1)", 1000), ExprKind::Rule), "0");
  const auto refused = ParseExpr("0" + Repeat(call, 4000), ExprKind::Rule);
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].name, "expr-syntax");
  EXPECT_EQ(refused.errors[0].message, "the functions up to here take more than 200000 operations");
  EXPECT_EQ(refused.errors[0].length, static_cast<int>(std::string_view("trunc_factor").size()));
}

/// Parses and evaluates; every error has a name and a place in the text.
auto Exercise(std::string_view text, ExprKind kind) -> void {
  const auto parsed = ParseExpr(text, kind);
  for (const ExprError& error : parsed.errors) {
    ASSERT_TRUE(error.name.starts_with("expr-")) << text;
    ASSERT_FALSE(error.message.empty()) << text;
    ASSERT_GE(error.column, 1) << text;
    ASSERT_GE(error.length, 1) << text;
    ASSERT_LE(error.column, static_cast<int>(text.size()) + 1) << text;
    ASSERT_LE(error.column + error.length, static_cast<int>(text.size()) + 2) << text;
  }
  if (parsed.ok()) {
    ValueOrErrors(text, kind);
  }
}

constexpr ExprKind Kinds[] = {ExprKind::Predicate, ExprKind::Schedule, ExprKind::Rule, ExprKind::Frequency};

TEST(ExprLimits, RandomBytesNeverCrash) {
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) {
      c = static_cast<char>(random());
    }
    Exercise(text, Kinds[random() % std::size(Kinds)]);
  }
}

TEST(ExprLimits, RandomTokensNeverCrash) {
  constexpr std::string_view Words[] = {
      "1",
      "0.5",
      "1e400",
      "layer",
      "step",
      "foo",
      "pi",
      "true",
      "false",
      "if",
      "then",
      "else",
      "and",
      "or",
      "not",
      "+",
      "-",
      "*",
      "/",
      "^",
      "<",
      "<=",
      ">",
      ">=",
      "==",
      "!=",
      "=",
      "(",
      ")",
      ",",
      "normal",
      "max",
      "%",
      "sqrt",
      "&&",
      "\xc3",
      "",
      "uniform",
      "let",
      "in",
      "a",
      "b",
      "let a =",
      "let b =",
      "clamp(",
      "cosine(",
      "kaiming_normal(",
      "zeros()",
  };
  std::mt19937 random(2);
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) {
      text += Words[random() % std::size(Words)];
      text += random() % 4 == 0 ? "" : " ";
    }
    Exercise(text, Kinds[random() % std::size(Kinds)]);
  }
}

}  // namespace
}  // namespace shardc
