#include "compiler/expr/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/checker.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/names.h"
#include "compiler/expr/parser.h"
#include "compiler/expr/tree.h"

namespace shardc {

auto ToText(const Distribution& distribution) -> std::string {
  const std::string arguments = fmt::format("{}", fmt::join(distribution.arguments, ", "));
  if (distribution.kind == DistributionKind::Constant) {
    return arguments;
  }
  return fmt::format("{}({})", ToText(distribution.kind), arguments);
}

auto ExprAccess::Make(std::string text, ExprTree tree) -> Expr {
  Expr expr;
  expr.text_ = std::move(text);
  expr.tree_ = std::make_shared<const ExprTree>(std::move(tree));
  return expr;
}

auto ExprAccess::Tree(const Expr& expr) -> const ExprTree& {
  CHECK(expr.tree_ != nullptr, "an expression that was not parsed");
  return *expr.tree_;
}

auto TextOf(const ExprNode& node, std::string_view text) -> std::string_view {
  return (node.source.empty() ? text : node.source)
      .substr(static_cast<size_t>(node.begin), static_cast<size_t>(node.end - node.begin));
}

auto SignOf(const ExprNode& node, std::string_view text) -> std::string_view {
  return (node.source.empty() ? text : node.source)
      .substr(static_cast<size_t>(node.operator_begin), static_cast<size_t>(node.operator_end - node.operator_begin));
}

auto Expr::type() const -> ExprType { return ExprAccess::Tree(*this).type; }

auto UsesVariable(const Expr& expr, std::string_view name) -> bool {
  const auto& nodes = ExprAccess::Tree(expr).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](const ExprNode& node) {
    return node.kind == ExprNodeKind::Variable && ExprVariableRows()[static_cast<size_t>(node.row)].name == name;
  });
}

auto ParseExpr(std::string_view text, ExprKind kind) -> ExprResult<Expr> {
  ExprResult<Expr> result;
  if (text.size() > MaxExprBytes) {
    result.errors.push_back(ErrorAt(static_cast<int>(MaxExprBytes), static_cast<int>(MaxExprBytes) + 1, "expr-syntax",
                                    fmt::format("the text has {} bytes; the limit is {}", text.size(), MaxExprBytes)));
    return result;
  }
  ExprTree tree = ParseTree(text, kind, result.errors);
  tree.kind = kind;
  tree.type = CheckTypes(tree, text, kind, result.errors);
  std::stable_sort(result.errors.begin(), result.errors.end(),
                   [](const ExprError& a, const ExprError& b) { return a.column < b.column; });
  if (result.ok()) {
    result.value = ExprAccess::Make(std::string(text), std::move(tree));
  }
  return result;
}

}  // namespace shardc
