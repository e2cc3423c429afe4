// The tables of names: every function row has cases here, and no name means two things.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/expr/names.h"
#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

struct FunctionCase {
  std::string_view function;
  std::string_view arguments;
  std::string_view value;
};

constexpr std::string_view Domain = "expr-domain";

constexpr FunctionCase FunctionCases[] = {
    {"min", "2, 3", "2"},
    {"min", "3, 2", "2"},
    {"min", "-1, 1", "-1"},
    {"max", "2, 3", "3"},
    {"max", "3, 2", "3"},
    {"sqrt", "2", "1.4142135623730951"},
    {"sqrt", "0", "0"},
    {"sqrt", "-1e-300", Domain},
    {"exp", "0", "1"},
    {"exp", "1", "2.718281828459045"},
    {"exp", "-1000", "0"},
    {"exp", "1000", Domain},
    {"log", "1", "0"},
    {"log", "exp(1)", "1"},
    {"log", "0", Domain},
    {"log", "-1", Domain},
    {"cos", "0", "1"},
    {"cos", "pi", "-1"},
    {"normal", "0, 0.02", "normal(0, 0.02)"},
    {"normal", "-1, 0", "normal(-1, 0)"},
    {"normal", "0, -0.02", Domain},
    {"trunc_normal", "0, 1, -2, 2", "trunc_normal(0, 1, -2, 2)"},
    {"trunc_normal", "0, 0, -2, 2", Domain},
    {"trunc_normal", "0, 1, 2, 2", Domain},
    {"uniform", "-0.5, 0.5", "uniform(-0.5, 0.5)"},
    {"uniform", "0.5, -0.5", Domain},
    {"uniform", "1, 1", Domain},
};

TEST(ExprFunctions, Values) {
  for (const FunctionCase& row : FunctionCases) {
    const std::string text = fmt::format("{}({})", row.function, row.arguments);
    const std::string value = ValueOrErrors(text, ExprKind::Rule);
    const std::string expected =
        row.value == Domain ? fmt::format("{} 1:{}", Domain, row.function.size()) : std::string(row.value);
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(ExprFunctions, EveryRowHasACaseWithAValueAndOneOutsideItsDomain) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    bool has_value = false;
    bool has_fault = false;
    for (const FunctionCase& row : FunctionCases) {
      has_value = has_value || (row.function == function.name && row.value != Domain);
      has_fault = has_fault || (row.function == function.name && row.value == Domain);
    }
    EXPECT_TRUE(has_value) << function.name << " has no case in FunctionCases";
    EXPECT_TRUE(has_fault || function.domain.empty()) << function.name << " has no case outside its domain";
    EXPECT_FALSE(function.doc.empty()) << function.name;
  }
}

TEST(ExprFunctions, EveryRowChecksItsNumberOfArguments) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    for (int count = 0; count <= function.num_parameters() + 1; ++count) {
      std::string arguments;
      for (int i = 0; i < count; ++i) {
        arguments += i == 0 ? "1" : ", 1";
      }
      const auto parsed = ParseExpr(fmt::format("{}({})", function.name, arguments), ExprKind::Rule);
      EXPECT_EQ(parsed.ok(), count == function.num_parameters()) << function.name << " with " << count;
    }
  }
}

TEST(ExprFunctions, DistributionsAreKnownInRulesOnly) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    EXPECT_EQ(function.IsKnownIn(ExprKind::Schedule), function.result == ExprType::Number) << function.name;
    EXPECT_EQ(function.IsKnownIn(ExprKind::Predicate), function.result == ExprType::Number) << function.name;
    EXPECT_TRUE(function.IsKnownIn(ExprKind::Rule)) << function.name;
    if (function.result == ExprType::Distribution) {
      EXPECT_EQ(ToText(function.distribution), function.name);
    }
  }
}

TEST(ExprNames, VariablesAreKnownInTheirKindsOnly) {
  for (const ExprVariableRow& variable : ExprVariableRows()) {
    for (const ExprKind kind : {ExprKind::Predicate, ExprKind::Schedule, ExprKind::Rule}) {
      const bool is_known = std::find(variable.kinds.begin(), variable.kinds.end(), kind) != variable.kinds.end();
      const std::string text = fmt::format("{}{}", variable.name, kind == ExprKind::Predicate ? " > 0" : "");
      EXPECT_EQ(ParseExpr(text, kind).ok(), is_known) << text << " in " << ToText(kind);
    }
    EXPECT_TRUE(TestVariables().contains(variable.name)) << variable.name << " is missing in TestVariables";
    EXPECT_FALSE(variable.doc.empty()) << variable.name;
  }
}

TEST(ExprNames, NoNameMeansTwoThings) {
  std::multiset<std::string_view> names{"if", "then", "else", "and", "or", "not"};
  for (const ExprVariableRow& row : ExprVariableRows()) {
    names.insert(row.name);
  }
  for (const ExprConstantRow& row : ExprConstantRows()) {
    names.insert(row.name);
  }
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    names.insert(row.name);
  }
  for (const std::string_view name : names) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
}

}  // namespace
}  // namespace shardc
