// What a rule comes to, for tests of rules that are one draw or number.
#pragma once

#include "compiler/expr/expr.h"

namespace shardc {

/// Requires: the reduced rule is one.
inline auto EvaluateRule(const Expr& rule, const ExprVariables& variables) -> ExprResult<Distribution> {
  const auto reduced = ReduceRule(rule, variables);
  return reduced.ok() ? ExprResult<Distribution>{.value = DistributionOf(reduced.value).value(), .errors = {}}
                      : ExprResult<Distribution>{.value = {}, .errors = reduced.errors};
}

}  // namespace shardc
