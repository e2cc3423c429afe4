// The values of all nodes of an expression, as far as they are known when a plan is made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/expr/names.h"
#include "compiler/expr/tree.h"

namespace shardc {

class Evaluator {
 public:
  struct Slot {
    /// The number; for a condition, 1 or 0.
    double number = 0;
    /// Is it known at an element only?
    bool varies = false;
    /// The operation that has no value, if there is one.
    ExprNodeId fault;
  };

  /// Requires: both outlive it.
  Evaluator(const Expr& expr, const ExprVariables& variables);

  /// Evaluates some nodes again, after a variable changed. Requires: all that depend on it, in their order.
  auto Update(const std::vector<ExprNodeId>& nodes) -> void;

  auto tree() const -> const ExprTree& { return tree_; }
  auto root() const -> const Slot& { return slots_[tree_.root()]; }
  auto slot(ExprNodeId id) const -> const Slot& { return slots_[id]; }

  /// Returns the operand whose value is the node's, if it is known which: for names, and for `and`, `or` and `if` that
  /// are decided.
  auto Choice(const ExprNode& node) const -> std::optional<size_t>;

  /// Returns the fault of the root, if it has one.
  auto Errors() const -> std::vector<ExprError>;

 private:
  static auto Function(const ExprNode& call) -> const ExprFunctionRow&;
  static auto TextOfVariable(const ExprNode& node) -> std::string_view {
    return ExprVariableRows()[static_cast<size_t>(node.row)].name;
  }

  auto Operand(const ExprNode& node, size_t i) const -> const Slot& { return slots_[node.operands[i]]; }
  /// Returns the numbers of the node's operands from `first` on.
  auto Numbers(const ExprNode& node, size_t first = 0) const -> std::vector<double>;
  auto Variable(std::string_view name) const -> std::optional<double>;
  auto Evaluate(ExprNodeId own) const -> Slot;
  auto VaryingChoice(const ExprNode& node) const -> Slot;
  auto EvaluateStrict(ExprNodeId own) const -> Slot;
  auto HasElementDomain(const ExprNode& node) const -> bool;
  auto IsDivisionByZero(const ExprNode& node) const -> bool;
  /// Returns true if the text of a node has the variable; what names in it stand for does not count.
  auto Reads(ExprNodeId id, std::string_view variable) const -> bool;
  auto Compute(const ExprNode& node) const -> std::optional<double>;
  auto Describe(const ExprNode& node) const -> std::string;
  auto DescribeCall(const ExprNode& node) const -> std::string;

  const ExprTree& tree_;
  std::string_view text_;
  const ExprVariables& variables_;
  IdVector<ExprNodeId, Slot> slots_;
};

}  // namespace shardc
