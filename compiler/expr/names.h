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
  /// The value; 1 or 0 for a condition.
  double value;
  std::string_view doc;
};

/// The evaluation of a function: by C++ from numbers, by C++ at each element (draws, and what else depends on it), or
/// by its text.
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
  /// The library that computes it, or the source of its definition.
  std::string_view source;
  /// Kinds of expressions that may use it.
  std::vector<ExprKind> kinds;
  /// Largest error in ulp of a function that C++ computes: "0.5"; "exact".
  std::string_view error = {};
  /// Number or Distribution.
  ExprType result;
  /// The function that a row of kind Distribution, Element or Number stands for.
  DistributionKind distribution = DistributionKind::Constant;
  ElementFunction element = ElementFunction::Index;
  ExprFunction function = ExprFunction::Min;
  /// Text of a library function.
  std::string_view body = {};
  /// For the kind Number, the value, or nothing outside the domain; for Distribution, 0 within the domain.
  auto(*evaluate)(std::span<const double> arguments) -> std::optional<double> = nullptr;

  auto is_library() const -> bool { return kind == ExprFunctionKind::Library; }
  auto Is(ElementFunction which) const -> bool { return kind == ExprFunctionKind::Element && element == which; }
  /// Takes a name in quotes, and indices.
  auto takes_name() const -> bool { return Is(ElementFunction::Copy) || Is(ElementFunction::Seed); }
  auto num_parameters() const -> int;
  auto IsKnownIn(ExprKind kind) const -> bool;
};

/// Returns the texts between ", ": "mean", "std".
auto ParameterNames(const ExprFunctionRow& function) -> std::vector<std::string_view>;

auto ExprVariableRows() -> const std::vector<ExprVariableRow>&;
auto ExprConstantRows() -> const std::vector<ExprConstantRow>&;
/// Returns the rows of init_functions.def, then of expr_library.def.
auto ExprFunctionRows() -> const std::vector<ExprFunctionRow>&;

/// Returns the index of the row called `name`, or nothing.
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
