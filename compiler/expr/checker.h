// Types of an expression.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/tree.h"

namespace shardc {

/// Returns the type of the whole. Operands of the wrong type are added to `errors`, in any order.
/// Errors: expr-type. Nodes that contain Broken nodes are not reported.
auto CheckTypes(const ExprTree& tree, std::string_view text, ExprKind kind, std::vector<ExprError>& errors) -> ExprType;

}  // namespace shardc
