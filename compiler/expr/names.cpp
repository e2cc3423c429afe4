#include "compiler/expr/names.h"

#include <algorithm>

#include "compiler/expr/functions.h"

namespace shardc {

auto ExprFunctionRow::num_parameters() const -> int {
  return static_cast<int>(std::count(parameters.begin(), parameters.end(), ',')) + 1;
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
  static const std::vector<ExprFunctionRow> rows{
#define FUNCTION(Name, name, parameters, domain, doc) \
  {#name, parameters, domain, doc, ExprType::Number, DistributionKind::Constant, expr_functions::Name},
#define DISTRIBUTION(Name, name, parameters, domain, doc)                        \
  {#name,                                                                        \
   parameters,                                                                   \
   domain,                                                                       \
   doc,                                                                          \
   ExprType::Distribution,                                                       \
   DistributionKind::Name,                                                       \
   [](std::span<const double> arguments) -> std::optional<double> {              \
     return expr_functions::Name(arguments) ? std::optional(0.0) : std::nullopt; \
   }},
#include "schemas/init_functions.def"
  };
  return rows;
}

}  // namespace shardc
