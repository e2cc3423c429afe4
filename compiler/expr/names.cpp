#include "compiler/expr/names.h"

#include <algorithm>

#include "compiler/base/text/split.h"

namespace shardc {

auto ExprFunctionRow::num_parameters() const -> int {
  return parameters.empty() ? 0 : static_cast<int>(std::count(parameters.begin(), parameters.end(), ',')) + 1;
}

auto ExprFunctionRow::IsKnownIn(ExprKind kind) const -> bool {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

auto ParameterNames(const ExprFunctionRow& function) -> std::vector<std::string_view> {
  return SplitWords(function.parameters, ", ");
}

auto ExprVariableRows() -> const std::vector<ExprVariableRow>& {
  using enum ExprKind;
  static const std::vector<ExprVariableRow> rows{
#define KINDS(...) \
  { __VA_ARGS__ }
#define VARIABLE(name, kinds, doc) {#name, kinds, doc},
#include "schemas/expr_names.def"
#undef KINDS
  };
  return rows;
}

auto ExprConstantRows() -> const std::vector<ExprConstantRow>& {
  static const std::vector<ExprConstantRow> rows{
#define CONSTANT(name, type, value, doc) {#name, ExprType::type, value, doc},
#include "schemas/expr_names.def"
  };
  return rows;
}

auto ExprFunctionRows() -> const std::vector<ExprFunctionRow>& {
  using enum ExprKind;
  static const std::vector<ExprFunctionRow> rows{
#define KINDS(...) \
  { __VA_ARGS__ }
// What the rows of all four macros have.
#define NAMED(what_kind, function_name, parameter_names, condition, what, from)                                    \
  .kind = ExprFunctionKind::what_kind, .name = #function_name, .parameters = parameter_names, .domain = condition, \
  .doc = what, .source = from
#define FUNCTION(Name, function_name, parameters, domain, doc, largest_error, from) \
  {NAMED(Number, function_name, parameters, domain, doc, from),                     \
   .kinds = {Predicate, Schedule, Rule, Frequency},                                 \
   .error = largest_error,                                                          \
   .result = ExprType::Number,                                                      \
   .function = ExprFunction::Name,                                                  \
   .evaluate = [](std::span<const double> arguments) { return EvaluateFunction(ExprFunction::Name, arguments); }},
#define DISTRIBUTION(Name, function_name, parameters, domain, doc, from)                       \
  {NAMED(Distribution, function_name, parameters, domain, doc, from), .kinds = {Rule},         \
   .result = ExprType::Distribution, .distribution = DistributionKind::Name,                   \
   .evaluate = [](std::span<const double> arguments) -> std::optional<double> {                \
     return IsInDomain(DistributionKind::Name, arguments) ? std::optional(0.0) : std::nullopt; \
   }},
#define ELEMENT(Name, function_name, known_in, parameters, domain, doc, from)                                   \
  {NAMED(Element, function_name, parameters, domain, doc, from), .kinds = known_in, .result = ExprType::Number, \
   .element = ElementFunction::Name},
#include "schemas/init_functions.def"
#define LIBRARY(function_name, type, known_in, parameters, domain, text, doc, from)                           \
  {NAMED(Library, function_name, parameters, domain, doc, from), .kinds = known_in, .result = ExprType::type, \
   .body = text},
#include "schemas/expr_library.def"
#undef NAMED
#undef KINDS
  };
  return rows;
}

}  // namespace shardc
