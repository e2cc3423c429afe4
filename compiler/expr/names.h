// The names that expressions know, from the rows of schemas/expr_names.def, schemas/init_functions.def and
// schemas/expr_library.def.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/functions.h"

namespace shardc {

struct ExprVariableRow {
  std::string_view name;
  std::vector<ExprKind> kinds;
  std::string_view doc;
};

struct ExprConstantRow {
  std::string_view name;
  ExprType type;
  /// Of a condition, 1 or 0.
  double value;
  std::string_view doc;
};

/// Who evaluates a function: C++, from numbers; C++, at each element (draws, and what else depends on it); or its text.
enum class ExprFunctionKind { Number, Distribution, Element, Library };

enum class ElementFunction {
#define ELEMENT(Name, name, kinds, parameters, domain, doc, source) Name,
#include "schemas/init_functions.def"
};

struct ExprFunctionRow {
  ExprFunctionKind kind;
  std::string_view name;
  /// "mean, std".
  std::string_view parameters;
  /// "std >= 0"; empty: all numbers. Of a library function, a condition in the language.
  std::string_view domain;
  std::string_view doc;
  /// Who computes it, or where its definition is from.
  std::string_view source;
  /// Where it is known.
  std::vector<ExprKind> kinds;
  /// Of those that C++ computes, the largest error, in ulp: "0.5"; "exact".
  std::string_view error = {};
  /// Number or Distribution.
  ExprType result;
  /// Of kind Distribution, Element and Number.
  DistributionKind distribution = DistributionKind::Constant;
  ElementFunction element = ElementFunction::Index;
  ExprFunction function = ExprFunction::Min;
  /// Of a library function, its text.
  std::string_view body = {};
  /// Of kind Number, the value, or nothing outside the domain; of Distribution, 0 within it.
  auto(*evaluate)(std::span<const double> arguments) -> std::optional<double> = nullptr;

  auto is_library() const -> bool { return kind == ExprFunctionKind::Library; }
  auto Is(ElementFunction which) const -> bool { return kind == ExprFunctionKind::Element && element == which; }
  /// Takes a name in quotes, and indices.
  auto takes_name() const -> bool { return Is(ElementFunction::Copy) || Is(ElementFunction::Seed); }
  auto num_parameters() const -> int;
  auto IsKnownIn(ExprKind kind) const -> bool;
};

/// The texts between ", ": "mean", "std".
auto ParameterNames(const ExprFunctionRow& function) -> std::vector<std::string_view>;

auto ExprVariableRows() -> const std::vector<ExprVariableRow>&;
auto ExprConstantRows() -> const std::vector<ExprConstantRow>&;
/// Returns the rows of init_functions.def, then of expr_library.def.
auto ExprFunctionRows() -> const std::vector<ExprFunctionRow>&;

/// The index of the row called `name`, or nothing.
template <class Row>
auto FindRow(const std::vector<Row>& rows, std::string_view name) -> std::optional<int> {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) {
      return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

}  // namespace shardc
