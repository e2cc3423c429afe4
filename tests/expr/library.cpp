// The functions that are written in the language, against formulas of their own; and what the table promises of its
// rows: their texts have no faults in the kinds that they name, and faults in them are reported at the call.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/names.h"
#include "tests/expr/expr_case.h"
#include "tests/support/rule_value.h"

namespace shardc {
namespace {

constexpr ExprKind Rule = ExprKind::Rule;

struct LibraryCase {
  std::string_view text;
  /// Or "expr-domain COLUMN:LENGTH".
  std::string_view value;
  ExprKind kind = Rule;
};

// fan_in is 128, fan_out 256; step is 10 of 100.
constexpr LibraryCase LibraryCases[] = {
    {"clamp(5, 0, 1)", "1"},
    {"clamp(-5, 0, 1)", "0"},
    {"clamp(0.5, 0, 1)", "0.5"},
    {"clamp(3, 2, 2)", "2"},
    {"1 + clamp(3, 2, 1)", "expr-domain 5:5"},
    {"trunc_factor(0)", "expr-domain 1:12"},
    {"trunc_factor(50)", "1"},
    {"dim(0)", "256"},
    {"dim(1) / dim(layer - 3)", "0.5"},
    {"dim(2)", "expr-domain 1:3"},
    {"dim(0.5)", "expr-domain 1:3"},
    {"dim(-1)", "expr-domain 1:3"},
    {"zeros()", "0"},
    {"ones()", "1"},
    {"trunc_normal_sigma(1, 0.5, 2)", "trunc_normal(1, 0.5, 0, 2)"},
    {"trunc_normal_sigma(0, 0, 2)", "expr-domain 1:18"},
    {"trunc_normal_sigma(0, 1, 0)", "expr-domain 1:18"},
    {"trunc_normal_realised(0, -1, 2)", "expr-domain 1:21"},
    {"trunc_normal_realised(0, 1, 2)", "trunc_normal(0, 1.1368472343385565, -2.273694468677113, 2.273694468677113)"},
    // sqrt(6 / 384) is 1/8.
    {"xavier_uniform(1)", "uniform(-0.125, 0.125)"},
    {"xavier_uniform(2)", "uniform(-0.25, 0.25)"},
    {"xavier_uniform(0)", "expr-domain 1:14"},
    {"xavier_normal(1)", "normal(0, 0.07216878364870322)"},
    {"xavier_normal(-1)", "expr-domain 1:13"},
    // sqrt(2 / 128) is 1/8.
    {"kaiming_normal(0)", "normal(0, 0.125)"},
    {"kaiming_normal(1)", "normal(0, 0.08838834764831845)"},
    {"kaiming_uniform(sqrt(5))", "uniform(-0.08838834764831843, 0.08838834764831843)"},
    {"lecun_normal()", "trunc_normal(0, 0.10048404857174566, -0.20096809714349131, 0.20096809714349131)"},
    // head_dim is 16.
    {"linear_rope(4)", "10000 ^ (-2 * index(0) / 16) / 4", Frequency},
    {"linear_rope(0.5)", "expr-domain 1:11", Frequency},
    {"llama3_rope(8, 1, 4, 8192)",
     "let t0 = 10000 ^ (-2 * index(0) / 16) in let t1 = min(max((8192 * t0 / 6.283185307179586 - 1) / 3, 0), 1) in "
     "t0 * (t1 + (1 - t1) / 8)",
     Frequency},
    {"llama3_rope(8, 4, 4, 8192)", "expr-domain 1:11", Frequency},
    {"llama3_rope(8, 1, 4, 0)", "expr-domain 1:11", Frequency},
    {"warmup(20)", "0.55", Schedule},
    {"warmup(11)", "1", Schedule},
    {"warmup(0)", "1", Schedule},
    {"warmup(-1)", "expr-domain 1:6", Schedule},
    {"linear(50, 0.1)", "1", Schedule},
    {"linear(5, 0)", "0.9473684210526316", Schedule},
    {"linear(100, 0)", "expr-domain 1:6", Schedule},
    {"cosine(50, 0.1)", "1", Schedule},
    {"cosine(100, 0.1)", "expr-domain 1:6", Schedule},
    {"cosine(-1, 0.1)", "expr-domain 1:6", Schedule},
    {"wsd(20, 30, 0)", "0.55", Schedule},
    {"wsd(71, 30, 0)", "expr-domain 1:3", Schedule},
    {"wsd(0, 0, 0)", "expr-domain 1:3", Schedule},
    {"inverse_sqrt(44)", "0.25", Schedule},
    {"inverse_sqrt(0)", "expr-domain 1:12", Schedule},
};

TEST(ExprLibrary, Values) {
  for (const LibraryCase& row : LibraryCases) {
    EXPECT_EQ(ValueOrErrors(row.text, row.kind), row.value) << row.text;
  }
}

TEST(ExprLibrary, EveryRowHasACaseWithAValueAndOneOutsideItsDomain) {
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    if (!function.is_library()) {
      continue;
    }
    const auto has_case = [&](bool with_value) {
      return std::any_of(std::begin(LibraryCases), std::end(LibraryCases), [&](const LibraryCase& row) {
        return row.text.find(fmt::format("{}(", function.name)) != std::string_view::npos &&
               row.value.starts_with("expr-") != with_value;
      });
    };
    EXPECT_TRUE(has_case(true)) << function.name << " has no case with a value";
    EXPECT_TRUE(has_case(false) || function.domain.empty()) << function.name << " has no case outside its domain";
    EXPECT_FALSE(function.doc.empty() || function.source.empty()) << function.name;
  }
}

TEST(ExprLibrary, RowsAreSoundInTheirKindsAndOfTheirType) {
  std::set<std::string_view> values;
  for (const ExprVariableRow& row : ExprVariableRows()) {
    values.insert(row.name);
  }
  for (const ExprConstantRow& row : ExprConstantRows()) {
    values.insert(row.name);
  }
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    if (!function.is_library()) {
      continue;
    }
    std::string call = fmt::format("{}(", function.name);
    for (const std::string_view parameter : ParameterNames(function)) {
      EXPECT_FALSE(values.contains(parameter)) << function.name << " has a parameter that hides a variable";
      call += call.ends_with('(') ? "1" : ", 1";
    }
    call += ")";
    for (const ExprKind kind : {Predicate, Schedule, Rule, Frequency}) {
      const std::string text = kind == Predicate ? call + " > 0" : call;
      const auto parsed = ParseExpr(text, kind);
      EXPECT_EQ(parsed.ok(), function.IsKnownIn(kind)) << text << " in " << ToText(kind);
      if (parsed.ok() && kind != Predicate) {
        EXPECT_EQ(parsed.value.type(), function.result) << text;
      }
    }
    if (!function.domain.empty()) {
      // Alone it does not know the parameters: as many names are unknown, and nothing else is wrong with it.
      for (const ExprError& error : ParseExpr(function.domain, Predicate).errors) {
        EXPECT_EQ(error.name, "expr-unknown-name") << function.domain << ": " << error.message;
      }
    }
  }
}

struct MessageCase {
  std::string_view text;
  int column;
  int length;
  std::string_view message;
  ExprKind kind = Rule;
};

constexpr MessageCase MessageCases[] = {
    {"2 * clamp(1, 3, 2)", 5, 5, "`clamp` takes low <= high; x is 1, low is 3, high is 2"},
    {"1e-3 * cosine(200, 0.1)", 8, 6, "`cosine` takes 0 <= begin and begin < steps; begin is 200, least is 0.1",
     Schedule},
    // What goes wrong inside is the call's, and says in which function.
    {"kaiming_normal(1e200)", 1, 14, "in `kaiming_normal`, `^` of 1e+200 and 2 is not finite"},
    {"trunc_normal_sigma(1e300, 1e-300, 2)", 1, 18,
     "in `trunc_normal_sigma`, `trunc_normal` takes std > 0 and a < b; mean is 1e+300, std is 1e-300, a is 1e+300, b "
     "is "
     "1e+300"},
    {"1 * (2 + wsd(1, 2, 1e308 * 10))", 26, 1, "`*` of 1e+308 and 10 is not finite", Schedule},
    // The innermost function of the library that found it.
    {"lecun_normal()", 1, 12, "in `lecun_normal`, `fan_in` has no value here"},
};

TEST(ExprLibrary, FaultsAreReportedAtTheCall) {
  for (const MessageCase& row : MessageCases) {
    const auto parsed = ParseExpr(row.text, row.kind);
    ASSERT_TRUE(parsed.ok()) << row.text;
    ExprVariables variables = TestVariables();
    variables.erase("fan_in");
    if (row.text.starts_with("kaiming")) {
      variables["fan_in"] = 128;
    }
    const auto errors = row.kind == Rule ? EvaluateRule(parsed.value, variables).errors
                                         : EvaluateNumber(parsed.value, variables).errors;
    ASSERT_EQ(errors.size(), 1U) << row.text;
    EXPECT_EQ(errors[0].message, row.message) << row.text;
    EXPECT_EQ(errors[0].column, row.column) << row.text;
    EXPECT_EQ(errors[0].length, row.length) << row.text;
  }
}

// An argument that the function does not look at has no fault, as elsewhere in the language.
TEST(ExprLibrary, ArgumentsAreLookedAtWhereTheyAreNeeded) {
  EXPECT_EQ(ValueOrErrors("if layer == 3 then 1 else clamp(1 / 0, 0, 1)", Rule), "1");
  EXPECT_EQ(ValueOrErrors("clamp(1 / 0, 0, 1)", Rule), "expr-domain 9:1");
}

auto At(std::string_view text, int64_t step, int64_t steps) -> double {
  const auto parsed = ParseExpr(text, Schedule);
  CHECK(parsed.ok(), "{}", text);
  const auto value =
      EvaluateNumber(parsed.value, {{"step", static_cast<double>(step)}, {"steps", static_cast<double>(steps)}});
  CHECK(value.ok(), "{}", value.errors.front().message);
  return value.value;
}

TEST(ExprLibrary, SchedulesFollowTheirFormulasAtEveryStep) {
  constexpr int64_t Steps = 137;
  for (int64_t step = 0; step < Steps; ++step) {
    const auto s = static_cast<double>(step);
    const double warm = std::min((s + 1) / 20, 1.0);
    const double done = std::max(0.0, s - 20) / (Steps - 20);
    EXPECT_DOUBLE_EQ(At("warmup(20)", step, Steps), warm) << step;
    EXPECT_NEAR(At("warmup(20) * cosine(20, 0.1)", step, Steps),
                step < 20 ? warm : 0.1 + 0.45 * (1 + std::cos(M_PI * done)), 1e-15)
        << step;
    EXPECT_NEAR(At("warmup(20) * linear(20, 0.1)", step, Steps), step < 20 ? warm : 1 - 0.9 * done, 1e-15) << step;
    EXPECT_NEAR(At("wsd(20, 30, 0)", step, Steps), std::min({warm, 1.0, (Steps - s) / 30}), 1e-15) << step;
    EXPECT_NEAR(At("inverse_sqrt(20)", step, Steps),
                std::sqrt(20.0) * std::min(1 / std::sqrt(s + 1), (s + 1) / std::pow(20.0, 1.5)), 1e-15)
        << step;
  }
}

// The moments of the standard normal law on [-c, c], by Simpson's rule.
TEST(ExprLibrary, TruncFactorIsTheDeviationThatIsLeft) {
  for (double c = 0.001; c < 12; c *= 1.3) {
    double mass = 0;
    double squares = 0;
    constexpr int Cells = 2000;
    for (int i = 0; i <= Cells; ++i) {
      const double x = c * (2.0 * i / Cells - 1);
      const double weight = (i == 0 || i == Cells ? 1 : i % 2 == 1 ? 4 : 2) * std::exp(-x * x / 2);
      mass += weight;
      squares += weight * x * x;
    }
    const auto parsed = ParseExpr(fmt::format("trunc_factor({})", c), Rule);
    EXPECT_NEAR(EvaluateNumber(parsed.value, {}).value / std::sqrt(squares / mass), 1, 1e-11) << c;
  }
  // The values that published schemes are quoted with.
  for (const auto& [c, factor] : {std::pair(2, "0.879626"), std::pair(3, "0.986578"), std::pair(4, "0.999465")}) {
    const auto parsed = ParseExpr(fmt::format("trunc_factor({})", c), Rule);
    EXPECT_EQ(fmt::format("{:.6f}", EvaluateNumber(parsed.value, {}).value), factor);
  }
}

}  // namespace
}  // namespace shardc
