// Tokens to a tree, by recursive descent; resolves names and counts arguments on the way.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/tree.h"

namespace shardc {

/// Returns the tree of a text. Faults are added to `errors`, and Broken nodes stand in their place.
/// Requires: text.size() <= MaxExprBytes. Errors: expr-syntax, expr-unknown-name, expr-name-taken, expr-argument-count,
/// expr-type (a variable that is called).
auto ParseTree(std::string_view text, ExprKind kind, std::vector<ExprError>& errors) -> ExprTree;

}  // namespace shardc
