// A parsed expression: a flat list of nodes, operands before the operations on them, so that checking, evaluating and
// compiling are loops over it, and no depth of nesting can exhaust the stack.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/ids.h"
#include "compiler/expr/expr.h"

namespace shardc {

enum class ExprNodeKind {
  Number,
  Bool,
  Variable,
  Negate,
  Add,
  Subtract,
  Multiply,
  Divide,
  Modulo,
  Power,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  Not,
  And,
  Or,
  If,
  Call,
  /// Stands for text that was reported; only in trees that are never evaluated.
  Broken,
};

using ExprNodeId = Id<struct ExprNodeTag>;

struct ExprNode {
  ExprNodeKind kind = ExprNodeKind::Broken;
  /// If: condition, then, else. Call: as many as the function has parameters.
  std::vector<ExprNodeId> operands;
  /// Number and Bool (1 or 0).
  double number = 0;
  /// Variable and Call: the row in ExprVariableRows or ExprFunctionRows.
  int row = -1;
  /// Bytes [begin, end) of the text that the node spans.
  int begin = 0;
  int end = 0;
  /// Bytes of its operator, function name or own token: where faults of the operation are reported.
  int operator_begin = 0;
  int operator_end = 0;
};

/// The last node is the root.
struct ExprTree {
  IdVector<ExprNodeId, ExprNode> nodes;
  ExprType type = ExprType::Number;

  auto root() const -> ExprNodeId { return {nodes.size() - 1}; }
};

/// The way from an Expr to its tree, for the files of this folder.
struct ExprAccess {
  static auto Make(std::string text, ExprTree tree) -> Expr;
  static auto Tree(const Expr& expr) -> const ExprTree&;
};

/// The text that a node spans.
auto TextOf(const ExprNode& node, std::string_view text) -> std::string_view;

}  // namespace shardc
