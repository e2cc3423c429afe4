#include "compiler/expr/names.h"

#include <algorithm>

#include "compiler/expr/functions.h"

namespace shardc {

auto ExprFunctionRow::num_parameters() const -> int {
  return parameters.empty() ? 0 : static_cast<int>(std::count(parameters.begin(), parameters.end(), ',')) + 1;
}

auto ExprFunctionRow::IsKnownIn(ExprKind kind) const -> bool {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

auto ParameterNames(const ExprFunctionRow& function) -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (std::string_view rest = function.parameters; !rest.empty();) {
    names.push_back(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), names.back().size() + 2));
  }
  return names;
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
#define FUNCTION(Name, name, parameters, domain, doc, error, source) \
  {#name,                                                            \
   {Predicate, Schedule, Rule},                                      \
   parameters,                                                       \
   domain,                                                           \
   doc,                                                              \
   error,                                                            \
   source,                                                           \
   ExprType::Number,                                                 \
   DistributionKind::Constant,                                       \
   "",                                                               \
   expr_functions::Name},
#define DISTRIBUTION(Name, name, parameters, domain, doc, source)                \
  {#name,                                                                        \
   {Rule},                                                                       \
   parameters,                                                                   \
   domain,                                                                       \
   doc,                                                                          \
   "",                                                                           \
   source,                                                                       \
   ExprType::Distribution,                                                       \
   DistributionKind::Name,                                                       \
   "",                                                                           \
   [](std::span<const double> arguments) -> std::optional<double> {              \
     return expr_functions::Name(arguments) ? std::optional(0.0) : std::nullopt; \
   }},
#include "schemas/init_functions.def"
#define KINDS(...) \
  { __VA_ARGS__ }
#define LIBRARY(name, result, kinds, parameters, domain, body, doc, source) \
  {#name, kinds, parameters, domain, doc, "", source, ExprType::result, DistributionKind::Constant, body, nullptr},
#include "schemas/expr_library.def"
#undef KINDS
  };
  return rows;
}

}  // namespace shardc
