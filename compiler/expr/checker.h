// Types of an expression.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/tree.h"

namespace shardc {

/// The type of the whole; operands of the wrong type are added to `errors`, in any order.
/// Errors: expr-type. What contains Broken nodes is not reported.
auto CheckTypes(const ExprTree& tree, std::string_view text, ExprKind kind, std::vector<ExprError>& errors) -> ExprType;

}  // namespace shardc
