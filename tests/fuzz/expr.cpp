// The expression language under any bytes: nothing crashes; every fault has a name and a place in the text; what parses
// has a finite value or a named fault, the same each time; a distribution's text reads back to it.
//
// With libFuzzer: tools/dev fuzz expr.
// The program tests_fuzz runs it on random changes of the language's own texts (tests/fuzz/mutations.cpp).

#include <cmath>
#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/moments.h"
#include "compiler/expr/names.h"

namespace shardc {
namespace {

auto CheckPlaces(const std::vector<ExprError>& errors, std::string_view text) -> void {
  const auto size = static_cast<int>(text.size());
  for (const ExprError& error : errors) {
    CHECK(error.name.starts_with("expr-") && !error.message.empty(), "{}: {}", error.name, error.message);
    CHECK(error.column >= 1 && error.length >= 1 && error.column <= size + 1 && error.column + error.length <= size + 2,
          "{}:{} of {} bytes", error.column, error.length, size);
  }
}

template <class T>
auto CheckedValue(ExprResult<T> (*evaluate)(const Expr&, const ExprVariables&), const Expr& expr,
                  const ExprVariables& variables) -> ExprResult<T> {
  const ExprResult<T> value = evaluate(expr, variables);
  CheckPlaces(value.errors, expr.text());
  CHECK(value.errors.size() <= 1, "{} faults", value.errors.size());
  const ExprResult<T> again = evaluate(expr, variables);
  CHECK(again.value == value.value && again.ok() == value.ok(), "`{}` changes its value", expr.text());
  return value;
}

auto CheckValues(const Expr& expr, const ExprVariables& variables) -> void {
  if (expr.type() == ExprType::Bool) {
    CheckedValue<bool>(EvaluateBool, expr, variables);
    return;
  }
  if (expr.type() == ExprType::Number) {
    CHECK(std::isfinite(CheckedValue<double>(EvaluateNumber, expr, variables).value), "`{}`", expr.text());
  }
  const auto rule = ReduceRule(expr, variables);
  if (!rule.ok()) {
    return;
  }
  // What is left is the same when it is read again.
  const auto again = ReduceRule(rule.value, {});
  CHECK(again.ok() && again.value.text() == rule.value.text(), "`{}`: `{}`", expr.text(), rule.value.text());
  if (const auto distribution = DistributionOf(rule.value)) {
    CHECK(ToText(*distribution) == rule.value.text(), "{}", rule.value.text());
    const Moments moments = MomentsOf(*distribution);
    CHECK(!std::isnan(moments.mean) && moments.std >= 0, "{}: {}, {}", rule.value.text(), moments.mean, moments.std);
  }
}

}  // namespace
}  // namespace shardc

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ExprVariables variables;
  for (const ExprVariableRow& row : ExprVariableRows()) {
    variables.emplace(row.name, 3 + static_cast<double>(variables.size()));
  }
  for (const ExprKind kind : {ExprKind::Predicate, ExprKind::Schedule, ExprKind::Rule, ExprKind::Frequency}) {
    const auto parsed = ParseExpr(text, kind);
    CheckPlaces(parsed.errors, text);
    if (parsed.ok()) {
      CheckValues(parsed.value, variables);
      CheckValues(parsed.value, {});
    }
  }
  return 0;
}
