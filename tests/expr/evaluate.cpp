// Values: one row, one fact of grammar, precedence, laziness or arithmetic.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/expr/expr_case.h"
#include "tests/support/rule_value.h"

namespace shardc {
namespace {

struct ValueCase {
  std::string_view text;
  std::string_view value;
  ExprKind kind = ExprKind::Rule;
};

constexpr ValueCase ValueCases[] = {
    // Numbers.
    {.text = "0", .value = "0"},
    {.text = "12", .value = "12"},
    {.text = "007", .value = "7"},
    {.text = "0.02", .value = "0.02"},
    {.text = ".5", .value = "0.5"},
    {.text = "5.", .value = "5"},
    {.text = "3e-4", .value = "0.0003"},
    {.text = "3E+2", .value = "300"},
    {.text = "1.7976931348623157e308", .value = "1.7976931348623157e+308"},
    {.text = "5e-324", .value = "5e-324"},
    {.text = "0.1 + 0.2", .value = "0.30000000000000004"},
    // Names.
    {.text = "pi", .value = "3.141592653589793"},
    {.text = "layer", .value = "3"},
    {.text = "layers", .value = "32"},
    {.text = "hidden", .value = "64"},
    {.text = "fan_in", .value = "128"},
    {.text = "fan_out", .value = "256"},
    {.text = "numel == fan_in * fan_out and num_dims == 2",
     .value = "expr-unknown-name 1:5, expr-unknown-name 10:6, expr-unknown-name 19:7, expr-unknown-name 31:8",
     .kind = Predicate},
    {.text = "if numel == fan_in * fan_out and num_dims == 2 then heads + kv_heads else 0", .value = "12"},
    {.text = "head_dim + ffn + vocab + seq", .value = "1744"},
    {.text = "init_std", .value = "0.02"},
    {.text = "step", .value = "10", .kind = Schedule},
    {.text = "steps", .value = "100", .kind = Schedule},
    {.text = "true", .value = "true", .kind = Predicate},
    {.text = "false", .value = "false", .kind = Predicate},
    // Precedence.
    {.text = "1 + 2 * 3", .value = "7"},
    {.text = "(1 + 2) * 3", .value = "9"},
    {.text = "2 * 3 ^ 2", .value = "18"},
    {.text = "-2^2", .value = "-4"},
    {.text = "(-2)^2", .value = "4"},
    {.text = "2^-1", .value = "0.5"},
    {.text = "2^-2^2", .value = "0.0625"},
    {.text = "2^3^2", .value = "512"},
    {.text = "(2^3)^2", .value = "64"},
    {.text = "- -3", .value = "3"},
    {.text = "2 - -3", .value = "5"},
    {.text = "2 * -3", .value = "-6"},
    {.text = "10 - 4 - 3", .value = "3"},
    {.text = "100 / 5 / 2", .value = "10"},
    {.text = "8 / 2 * 4", .value = "16"},
    {.text = "7 * 5 % 4", .value = "3"},
    {.text = "1 + 7 % 4", .value = "4"},
    {.text = "7 % 4", .value = "3"},
    {.text = "-7 % 4", .value = "1"},
    {.text = "7 % -4", .value = "-1"},
    {.text = "-8 % 4", .value = "0"},
    {.text = "7.5 % 2", .value = "1.5"},
    {.text = "layer % 2 == 1", .value = "true", .kind = Predicate},
    {.text = "1 + 1 == 2", .value = "true", .kind = Predicate},
    {.text = "not 1 == 2", .value = "true", .kind = Predicate},
    {.text = "not not true", .value = "true", .kind = Predicate},
    {.text = "not true and false", .value = "false", .kind = Predicate},
    {.text = "not (true and false)", .value = "true", .kind = Predicate},
    {.text = "true or false and false", .value = "true", .kind = Predicate},
    {.text = "(true or false) and false", .value = "false", .kind = Predicate},
    {.text = "if true then 1 else 2 + 10", .value = "1"},
    {.text = "(if true then 1 else 2) + 10", .value = "11"},
    {.text = "if false then 1 else if false then 2 else 3", .value = "3"},
    {.text = "if if true then false else true then 1 else 2", .value = "2"},
    {.text = "((((7))))", .value = "7"},
    {.text = " \t\r\n1\n+\n1 ", .value = "2"},
    {.text = "layer<layers-1 and layer>=3", .value = "true", .kind = Predicate},
    // Comparisons.
    {.text = "1 < 2", .value = "true", .kind = Predicate},
    {.text = "2 < 2", .value = "false", .kind = Predicate},
    {.text = "2 <= 2", .value = "true", .kind = Predicate},
    {.text = "2 > 2", .value = "false", .kind = Predicate},
    {.text = "2 >= 2", .value = "true", .kind = Predicate},
    {.text = "2 == 2", .value = "true", .kind = Predicate},
    {.text = "2 != 2", .value = "false", .kind = Predicate},
    {.text = "0 == -0", .value = "true", .kind = Predicate},
    {.text = "true == (1 < 2)", .value = "true", .kind = Predicate},
    {.text = "true != true", .value = "false", .kind = Predicate},
    // Only what is needed is looked at.
    {.text = "if layer == 3 then 0 else 1 / (layer - 3)", .value = "0"},
    {.text = "false and 1 / 0 > 1", .value = "false", .kind = Predicate},
    {.text = "true or 1 / 0 > 1", .value = "true", .kind = Predicate},
    {.text = "true and 1 / 0 > 1", .value = "expr-domain 12:1", .kind = Predicate},
    {.text = "false or 1 / 0 > 1", .value = "expr-domain 12:1", .kind = Predicate},
    {.text = "1 / 0 > 1 and false", .value = "expr-domain 3:1", .kind = Predicate},
    {.text = "if 1 / 0 > 1 then 1 else 2", .value = "expr-domain 6:1"},
    // Names for values.
    {.text = "let a = 2 in a + a * a", .value = "6"},
    {.text = "let a = 2 in let b = a + 1 in a * b", .value = "6"},
    {.text = "let a = let b = 3 in b * b in a + 1", .value = "10"},
    {.text = "let a = 1 in a + 1 < 3", .value = "true", .kind = Predicate},
    {.text = "(let a = 2 in a) + (let a = 3 in a)", .value = "5"},
    {.text = "let sqrt = 9 in sqrt(sqrt)", .value = "3"},
    {.text = "if layer == 3 then let a = 1 in a else 2", .value = "1"},
    {.text = "let half = layer < layers / 2 in if half then 1 else 2", .value = "1"},
    {.text = "let wide = normal(0, 2) in if layer == 3 then wide else 0", .value = "normal(0, 2)"},
    {.text = "let a = 1 in -a^2", .value = "-1"},
    // Looked at where it is needed, and reported where it is written.
    {.text = "let a = 1 / 0 in 7", .value = "7"},
    {.text = "let a = 1 / 0 in if layer == 3 then 7 else a", .value = "7"},
    {.text = "let a = 1 / 0 in 7 + a", .value = "expr-domain 11:1"},
    // Distributions.
    {.text = "1", .value = "1"},
    {.text = "normal(0, 0.02 / sqrt(2 * layers))", .value = "normal(0, 0.0025)"},
    {.text = "if layer < 2 then normal(0, 1) else normal(0, 2)", .value = "normal(0, 2)"},
    {.text = "if layer > 2 then uniform(-1, 1) else 1", .value = "uniform(-1, 1)"},
    {.text = "if layer < 2 then uniform(-1, 1) else 1", .value = "1"},
    {.text = "(normal(0, 1))", .value = "normal(0, 1)"},
    // What depends on the element stays, in the shortest text.
    {.text = "index(layer - 3) * layers", .value = "index(0) * 32"},
    {.text = "2 * normal(0, 1)", .value = "2 * normal(0, 1)"},
    {.text = "let z = normal(0, 1) in z * z - 1 * 2", .value = "let t0 = normal(0, 1) in t0 * t0 - 2"},
    {.text = "(index(0) + 1) * 2 - (3 - index(1))", .value = "(index(0) + 1) * 2 - (3 - index(1))"},
    {.text = "(index(0) ^ 2) ^ 3 + index(0) ^ 2 ^ 3", .value = "(index(0) ^ 2) ^ 3 + index(0) ^ 8"},
    {.text = "-(index(0) + 1) - -index(1) - -4", .value = "-(index(0) + 1) - -index(1) - -4"},
    {.text = "(-2) ^ index(0)", .value = "(-2) ^ index(0)"},
    {.text = "if index(0) < 2 and layer == 3 then 0 else zeros() + 1",
     .value = "if index(0) < 2 and true then 0 else 1"},
    {.text = "if layer == 3 and index(0) < 2 then 0 else 1", .value = "if index(0) < 2 then 0 else 1"},
    {.text = "if not (index(0) < 2 or index(1) > 3) then 0 else 1",
     .value = "if not (index(0) < 2 or index(1) > 3) then 0 else 1"},
    {.text = "1 + (if index(0) < 2 then 0 else 1)", .value = "1 + (if index(0) < 2 then 0 else 1)"},
    {.text = "clamp(normal(0, 1), -1, 1)", .value = "min(max(normal(0, 1), -1), 1)"},
    {.text = "clamp(index(0), 0, index(1))",
     .value = "if 0 <= index(1) then min(max(index(0), 0), index(1)) else none()"},
    {.text = "copy(\"layers.{layer - 1}.q.{2 * 3}\", index(1), 4)", .value = "copy('layers.2.q.6', index(1), 4)"},
    {.text = "copy('x')", .value = "copy('x')"},
    {.text = "seed(\"layers.{layer - 1}.q\", layers - 32 + index(1))", .value = "seed('layers.2.q', 0 + index(1))"},
    {.text = "normal(0, 1) / row_norm(normal(0, 1))", .value = "normal(0, 1) / row_norm(normal(0, 1))"},
    // What no element has a value for is a fault, whatever condition on the element it comes after.
    {.text = "if index(0) > 0 then 1 / 0 else 1", .value = "expr-domain 24:1"},
    {.text = "index(2)", .value = "expr-domain 1:5"},
    {.text = "index(normal(0, 1))", .value = "expr-domain 1:5"},
    {.text = "copy('layers.{layer / 2}')", .value = "expr-domain 1:4"},
    // A schedule of the usual form: linear warm-up, then a cosine down to a tenth.
    {.text = "1e-3 * (if step < 4 then (step + 1) / 4 else 0.55 + 0.45 * cos(pi * (step - 4) / (steps - 4)))",
     .value = "0.0009913533761814538",
     .kind = Schedule},
};

TEST(ExprEvaluate, Values) {
  for (const ValueCase& row : ValueCases) {
    EXPECT_EQ(ValueOrErrors(row.text, row.kind), row.value) << row.text;
  }
}

struct DomainCase {
  std::string_view text;
  int column;
  int length;
  std::string_view message;
};

constexpr DomainCase DomainCases[] = {
    {"1 / 0", 3, 1, "division by zero: `0` is 0"},
    {"1 + 2 / (layer - 3)", 7, 1, "division by zero: `(layer - 3)` is 0"},
    {"0 / 0", 3, 1, "division by zero: `0` is 0"},
    {"1e300 % 3", 7, 1, "`%` takes quotients below 2^53; here 1e+300 is divided by 3"},
    {"0 ^ -1", 3, 1, "`^` of 0 takes powers of at least 0; the power is -1"},
    {"(0 - 8) ^ 0.5", 9, 1, "`^` of a negative number takes whole powers; here it is -8 to the power 0.5"},
    {"10 ^ 400", 4, 1, "`^` of 10 and 400 is not finite"},
    {"1e308 + 1e308", 7, 1, "`+` of 1e+308 and 1e+308 is not finite"},
    {"-1e308 - 1e308", 8, 1, "`-` of -1e+308 and 1e+308 is not finite"},
    {"1e200 * 1e200", 7, 1, "`*` of 1e+200 and 1e+200 is not finite"},
    {"1e200 / 1e-200", 7, 1, "`/` of 1e+200 and 1e-200 is not finite"},
    {"2 * exp(1000)", 5, 3, "`exp` is not finite; x is 1000"},
    {"log(0)", 1, 3, "`log` takes x > 0; x is 0"},
    {"sqrt(-layer)", 1, 4, "`sqrt` takes x >= 0; x is -3"},
    {"normal(0, -1)", 1, 6, "`normal` takes std >= 0; mean is 0, std is -1"},
    {"trunc_normal(0, 1, 2, -2)", 1, 12,
     "`trunc_normal` takes std > 0 and a < b; mean is 0, std is 1, a is 2, b is -2"},
    {"trunc_normal(0, 0, -2, 2)", 1, 12,
     "`trunc_normal` takes std > 0 and a < b; mean is 0, std is 0, a is -2, b is 2"},
    {"uniform(1, 1)", 1, 7, "`uniform` takes a < b; a is 1, b is 1"},
    {"normal(1 / 0, log(0))", 10, 1, "division by zero: `0` is 0"},
};

TEST(ExprEvaluate, DomainErrorsNameTheOperationAndItsOperands) {
  for (const DomainCase& row : DomainCases) {
    const auto parsed = ParseExpr(row.text, ExprKind::Rule);
    ASSERT_TRUE(parsed.ok()) << row.text;
    const auto result = EvaluateRule(parsed.value, TestVariables());
    ASSERT_EQ(result.errors.size(), 1U) << row.text;
    EXPECT_EQ(result.errors[0].name, "expr-domain") << row.text;
    EXPECT_EQ(result.errors[0].message, row.message);
    EXPECT_EQ(result.errors[0].column, row.column) << row.text;
    EXPECT_EQ(result.errors[0].length, row.length) << row.text;
  }
}

TEST(ExprEvaluate, VariableWithoutAValueIsAnErrorOnlyWhereItIsNeeded) {
  const ExprVariables without_layer{{"layers", 32}};
  EXPECT_EQ(ValueOrErrors("1 + layer", ExprKind::Rule, without_layer), "expr-domain 5:5");
  EXPECT_EQ(ValueOrErrors("if layers > 1 then 7 else layer", ExprKind::Rule, without_layer), "7");
  const auto result = EvaluateNumber(ParseExpr("layer", ExprKind::Rule).value, without_layer);
  EXPECT_EQ(result.errors.at(0).message, "`layer` has no value here");
}

TEST(ExprEvaluate, VariableThatIsNotFiniteIsAnError) {
  const ExprVariables infinite{{"layer", HUGE_VAL}};
  const auto result = EvaluateNumber(ParseExpr("layer", ExprKind::Rule).value, infinite);
  EXPECT_EQ(result.errors.at(0).message, "`layer` is not finite");
}

TEST(ExprEvaluate, TypedEvaluators) {
  EXPECT_EQ(EvaluateNumber(ParseExpr("step / steps", ExprKind::Schedule).value, TestVariables()).value, 0.1);
  EXPECT_TRUE(EvaluateBool(ParseExpr("layer < layers - 1", ExprKind::Predicate).value, TestVariables()).value);
  const auto rule =
      EvaluateRule(ParseExpr("trunc_normal(0, 0.02, -0.04, 0.04)", ExprKind::Rule).value, TestVariables());
  EXPECT_EQ(rule.value, (Distribution{.kind = DistributionKind::TruncNormal, .arguments = {0, 0.02, -0.04, 0.04}}));
}

TEST(ExprEvaluate, TextOfADistributionReadsBackToTheSameBits) {
  const Distribution distributions[] = {
      {.kind = DistributionKind::Constant, .arguments = {-0.1}},
      {.kind = DistributionKind::Normal, .arguments = {0, 1.0 / 3}},
      {.kind = DistributionKind::TruncNormal, .arguments = {-1e-300, 5e-324, -1.7976931348623157e308, 1e22}},
      {.kind = DistributionKind::Uniform, .arguments = {-2.0 / 3, 0.1}},
  };
  for (const Distribution& distribution : distributions) {
    const auto parsed = ParseExpr(ToText(distribution), ExprKind::Rule);
    ASSERT_TRUE(parsed.ok()) << ToText(distribution);
    EXPECT_EQ(EvaluateRule(parsed.value, {}).value, distribution) << ToText(distribution);
  }
  EXPECT_EQ(ToText(distributions[0]), "-0.1");
  EXPECT_EQ(ToText(distributions[3]), "uniform(-0.6666666666666666, 0.1)");
}

}  // namespace
}  // namespace shardc
