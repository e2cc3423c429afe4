// What the tables of expression tests share: the variables they are evaluated with, and one call for any type.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"

namespace shardc {

constexpr ExprKind Predicate = ExprKind::Predicate;
constexpr ExprKind Schedule = ExprKind::Schedule;
constexpr ExprKind Frequency = ExprKind::Frequency;

inline auto TestVariables() -> ExprVariables {
  return {{"layer", 3},   {"layers", 32},   {"hidden", 64},  {"fan_in", 128},    {"fan_out", 256},     {"step", 10},
          {"steps", 100}, {"numel", 32768}, {"num_dims", 2}, {"heads", 8},       {"kv_heads", 4},      {"head_dim", 16},
          {"ffn", 192},   {"vocab", 512},   {"seq", 1024},   {"init_std", 0.02}, {"rope_theta", 10000}};
}

/// The value of an expression as text ("true", "0.5", "normal(0, 0.02)"), or its errors, in order, each as
/// "name column:length".
inline auto ValueOrErrors(std::string_view text, ExprKind kind, const ExprVariables& variables = TestVariables())
    -> std::string {
  const auto listed = [](const std::vector<ExprError>& errors) {
    std::string list;
    for (const ExprError& error : errors) {
      list += fmt::format("{}{} {}:{}", list.empty() ? "" : ", ", error.name, error.column, error.length);
    }
    return list;
  };
  const auto parsed = ParseExpr(text, kind);
  if (!parsed.ok()) {
    return listed(parsed.errors);
  }
  if (parsed.value.type() == ExprType::Bool) {
    const auto result = EvaluateBool(parsed.value, variables);
    return result.ok() ? fmt::format("{}", result.value) : listed(result.errors);
  }
  if (kind == ExprKind::Rule || kind == ExprKind::Frequency) {
    const auto result = ReduceRule(parsed.value, variables);
    return result.ok() ? result.value.text() : listed(result.errors);
  }
  const auto number = EvaluateNumber(parsed.value, variables);
  return number.ok() ? fmt::format("{}", number.value) : listed(number.errors);
}

}  // namespace shardc
