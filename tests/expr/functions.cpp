// The tables of names: every row of a function that C++ computes has cases here (library.cpp has the others), and no
// name means two things.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
    {"abs", "-2.5", "2.5"},
    {"abs", "2.5", "2.5"},
    {"floor", "2.5", "2"},
    {"floor", "-2.5", "-3"},
    {"floor", "3", "3"},
    {"ceil", "2.5", "3"},
    {"ceil", "-2.5", "-2"},
    {"sqrt", "2", "1.4142135623730951"},
    {"sqrt", "0", "0"},
    {"sqrt", "-1e-300", Domain},
    {"pow", "2, 10", "1024"},
    {"pow", "2, -0.5", "0.7071067811865476"},
    {"pow", "-2, 3", "-8"},
    {"pow", "-2, -1", "-0.5"},
    {"pow", "0, 0", "1"},
    {"pow", "-2, 0.5", Domain},
    {"pow", "0, -1", Domain},
    {"pow", "10, 400", Domain},
    {"exp", "0", "1"},
    {"exp", "1", "2.718281828459045"},
    {"exp", "-1000", "0"},
    {"exp", "1000", Domain},
    {"log", "1", "0"},
    {"log", "exp(1)", "1"},
    {"log", "0", Domain},
    {"log", "-1", Domain},
    {"sin", "0", "0"},
    {"sin", "pi / 2", "1"},
    {"sin", "-1", "-0.8414709848078965"},
    {"sin", "2 ^ 30 + 1", Domain},
    {"tanh", "0.5", "0.46211715726000974"},
    {"tanh", "-1000", "-1"},
    {"erf", "0", "0"},
    {"erf", "0.5", "0.5204998778130465"},
    {"erf", "-10", "-1"},
    {"erfinv", "0", "0"},
    {"erfinv", "0.5", "0.4769362762044699"},
    {"erfinv", "-0.5", "-0.4769362762044699"},
    {"erfinv", "1", Domain},
    {"erfinv", "-1", Domain},
    {"cos", "0", "1"},
    {"cos", "pi", "-1"},
    {"cos", "-1e300", Domain},
    {"normal", "0, 0.02", "normal(0, 0.02)"},
    {"normal", "-1, 0", "normal(-1, 0)"},
    {"normal", "0, -0.02", Domain},
    {"trunc_normal", "0, 1, -2, 2", "trunc_normal(0, 1, -2, 2)"},
    {"trunc_normal", "0, 0, -2, 2", Domain},
    {"trunc_normal", "0, 1, 2, 2", Domain},
    {"uniform", "-0.5, 0.5", "uniform(-0.5, 0.5)"},
    {"index", "1", "index(1)"},
    {"index", "2", Domain},
    {"none", "", "none()"},
    {"row_norm", "index(0)", "row_norm(index(0))"},
    {"copy", "'x', 1", "copy('x', 1)"},
    {"copy", "'layers.{0.5}'", Domain},
    {"seed", "'x', 1", "seed('x', 1)"},
    {"seed", "'layers.{0.5}'", Domain},
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
    if (function.is_library()) {
      continue;
    }
    bool has_value = false;
    bool has_fault = false;
    for (const FunctionCase& row : FunctionCases) {
      has_value = has_value || (row.function == function.name && row.value != Domain);
      has_fault = has_fault || (row.function == function.name && row.value == Domain);
    }
    EXPECT_TRUE(has_value) << function.name << " has no case in FunctionCases";
    EXPECT_TRUE(has_fault || function.domain.empty()) << function.name << " has no case outside its domain";
    EXPECT_FALSE(function.doc.empty() || function.source.empty()) << function.name;
    EXPECT_EQ(function.error.empty(), function.kind != ExprFunctionKind::Number) << function.name;
  }
}

TEST(ExprFunctions, EveryRowChecksItsNumberOfArguments) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    for (int count = 0; count <= function.num_parameters() + 1; ++count) {
      std::string arguments;
      for (int i = 0; i < count; ++i) {
        arguments += i == 0 ? "1" : ", 1";
      }
      // Its first argument is a text, and the others may be left out: tests/expr/errors.cpp.
      if (function.takes_name()) {
        continue;
      }
      const auto parsed = ParseExpr(fmt::format("{}({})", function.name, arguments), function.kinds.back());
      EXPECT_EQ(parsed.ok(), count == function.num_parameters()) << function.name << " with " << count;
    }
  }
}

TEST(ExprFunctions, WhatDependsOnTheElementIsKnownInRulesOnlyAndThePairInFrequencies) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    if (function.result == ExprType::Distribution || function.kind == ExprFunctionKind::Element) {
      const bool is_index = function.Is(ElementFunction::Index);
      EXPECT_EQ(function.kinds, is_index ? std::vector({ExprKind::Rule, Frequency}) : std::vector({ExprKind::Rule}))
          << function.name;
    } else if (!function.is_library()) {
      EXPECT_EQ(function.kinds.size(), 4U) << function.name;
    }
    if (function.result == ExprType::Distribution && !function.is_library()) {
      EXPECT_EQ(ToText(function.distribution), function.name);
    }
  }
}

TEST(ExprNames, VariablesAreKnownInTheirKindsOnly) {
  for (const ExprVariableRow& variable : ExprVariableRows()) {
    for (const ExprKind kind : {Predicate, Schedule, ExprKind::Rule, Frequency}) {
      const bool is_known = std::find(variable.kinds.begin(), variable.kinds.end(), kind) != variable.kinds.end();
      const std::string text = fmt::format("{}{}", variable.name, kind == ExprKind::Predicate ? " > 0" : "");
      EXPECT_EQ(ParseExpr(text, kind).ok(), is_known) << text << " in " << ToText(kind);
    }
    EXPECT_TRUE(TestVariables().contains(variable.name)) << variable.name << " is missing in TestVariables";
    EXPECT_FALSE(variable.doc.empty()) << variable.name;
  }
}

TEST(ExprNames, NoNameMeansTwoThings) {
  std::multiset<std::string_view> names{"let", "in", "if", "then", "else", "and", "or", "not"};
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
