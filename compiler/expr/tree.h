// A parsed expression: a flat list of nodes, operands before the operations on them, so that checking, evaluating and
// compiling are loops over it, and no depth of nesting can exhaust the stack. What a `let` names, and the arguments of
// functions that are written in the language, are operands of every use: a node may have several users.
#pragma once

#include <string>
#include <string_view>
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
  /// copy("name", indices...) and seed, which `row` tells apart: `texts` around the first operands, which are numbers
  /// of the name, then the indices.
  Copy,
  /// The use of a name that a `let` gave: operand 0 is its value.
  Local,
  /// The use of a parameter's name, inside a function that is written in the language; a number.
  Parameter,
  /// A call of such a function: its domain (a condition), its body, then its arguments.
  Library,
  /// Stands for text that was reported; only in trees that are never evaluated.
  Broken,
};

using ExprNodeId = Id<struct ExprNodeTag>;

struct ExprNode {
  ExprNodeKind kind = ExprNodeKind::Broken;
  /// If: condition, then, else. Call: as many as the function has parameters.
  std::vector<ExprNodeId> operands;
  /// The parts of the name of a Copy before, between and after its numbers.
  std::vector<std::string> texts = {};
  /// Number and Bool (1 or 0).
  double number = 0;
  /// Variable, Call, Copy and Library: the row in ExprVariableRows or ExprFunctionRows.
  int row = -1;
  /// The text that the node stands in, of the function in row `library`; or empty: the expression's own.
  std::string_view source;
  int library = -1;
  /// Bytes [begin, end) of that text that the node spans.
  int begin = 0;
  int end = 0;
  /// Bytes of its operator, function name or own token.
  int operator_begin = 0;
  int operator_end = 0;
  /// Place in the expression's own text at which faults of the operation are reported: its operator, or the call that
  /// led here.
  int place_begin = 0;
  int place_end = 0;
};

/// The last node is the root.
struct ExprTree {
  IdVector<ExprNodeId, ExprNode> nodes;
  ExprKind kind = ExprKind::Rule;
  ExprType type = ExprType::Number;

  auto root() const -> ExprNodeId { return {nodes.size() - 1}; }
};

/// The way from an Expr to its tree, for the files of this folder.
struct ExprAccess {
  static auto Make(std::string text, ExprTree tree) -> Expr;
  static auto Tree(const Expr& expr) -> const ExprTree&;
};

/// Returns the text that a node spans, and its operator, function name or own token. `text` is the expression's own.
auto TextOf(const ExprNode& node, std::string_view text) -> std::string_view;
auto SignOf(const ExprNode& node, std::string_view text) -> std::string_view;

}  // namespace shardc
