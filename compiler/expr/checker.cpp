// One loop over the nodes, operands first. An operand of the wrong type is reported at its own place; the operation
// then has the type that it would have with sound operands. An operation with a distribution among its operands is a
// distribution; so is an `if` with one in either branch.

#include "compiler/expr/checker.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "compiler/base/check.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/names.h"

namespace shardc {

namespace {

/// Returns the type with its article: "a number".
auto WithArticle(ExprType type) -> std::string { return fmt::format("a {}", ToText(type)); }

class Checker {
 public:
  Checker(const ExprTree& tree, std::string_view text, std::vector<ExprError>& errors)
      : tree_(tree), text_(text), errors_(errors) {}

  auto Run(ExprKind kind) -> ExprType {
    for (const ExprNode& node : tree_.nodes) {
      types_.Add(TypeOf(node));
    }
    const auto type = types_[tree_.root()];
    const ExprNode& root = tree_.nodes[tree_.root()];
    const auto ask = [&](bool fits, std::string_view message) {
      if (type && !fits) {
        Report(root, message, *type);
      }
    };
    switch (kind) {
      case ExprKind::Predicate: ask(type == ExprType::Bool, "a predicate is a condition; {} is {}"); break;
      case ExprKind::Schedule: ask(type == ExprType::Number, "a schedule is a number; {} is {}"); break;
      case ExprKind::Rule: ask(type != ExprType::Bool, "an init rule is a number or a distribution; {} is {}"); break;
      case ExprKind::Frequency: ask(type == ExprType::Number, "a frequency is a number; {} is {}"); break;
    }
    return type.value_or(ExprType::Number);
  }

 private:
  auto TypeOf(const ExprNode& node) -> std::optional<ExprType> {
    switch (node.kind) {
      case ExprNodeKind::Number:
      case ExprNodeKind::Variable: return ExprType::Number;
      case ExprNodeKind::Bool: return ExprType::Bool;
      case ExprNodeKind::Negate:
      case ExprNodeKind::Add:
      case ExprNodeKind::Subtract:
      case ExprNodeKind::Multiply:
      case ExprNodeKind::Divide:
      case ExprNodeKind::Modulo:
      case ExprNodeKind::Power: RequireAll(node, ExprType::Number); return NumberOrDraw(node);
      case ExprNodeKind::Less:
      case ExprNodeKind::LessEqual:
      case ExprNodeKind::Greater:
      case ExprNodeKind::GreaterEqual: RequireAll(node, ExprType::Number); return ExprType::Bool;
      case ExprNodeKind::Equal:
      case ExprNodeKind::NotEqual: RequireComparable(node); return ExprType::Bool;
      case ExprNodeKind::Not:
      case ExprNodeKind::And:
      case ExprNodeKind::Or: RequireAll(node, ExprType::Bool); return ExprType::Bool;
      case ExprNodeKind::If: return TypeOfIf(node);
      case ExprNodeKind::Call:
        RequireAll(node, ExprType::Number);
        return ResultOf(node) == ExprType::Number ? NumberOrDraw(node) : ResultOf(node);
      case ExprNodeKind::Copy: RequireAll(node, ExprType::Number); return ExprType::Distribution;
      case ExprNodeKind::Local: return types_[node.operands[0]];
      case ExprNodeKind::Parameter:
        return types_[node.operands[0]] == ExprType::Distribution ? ExprType::Distribution : ExprType::Number;
      case ExprNodeKind::Library:
        for (size_t i = 2; i < node.operands.size(); ++i) {
          Require(node, node.operands[i], ExprType::Number);
        }
        return ResultOf(node) == ExprType::Number ? NumberOrDraw(node, 2) : ResultOf(node);
      case ExprNodeKind::Broken: return std::nullopt;
    }
    CHECK(false, "node kind {}", static_cast<int>(node.kind));
  }

  static auto ResultOf(const ExprNode& call) -> ExprType {
    return ExprFunctionRows()[static_cast<size_t>(call.row)].result;
  }

  /// Returns the type of an operation on numbers: a distribution if any operand from `first` on is one, else a number.
  auto NumberOrDraw(const ExprNode& node, size_t first = 0) const -> ExprType {
    const bool draws = std::any_of(node.operands.begin() + static_cast<std::ptrdiff_t>(first), node.operands.end(),
                                   [&](ExprNodeId operand) { return types_[operand] == ExprType::Distribution; });
    return draws ? ExprType::Distribution : ExprType::Number;
  }

  static auto Fits(ExprType type, ExprType wanted) -> bool {
    return type == wanted || (type == ExprType::Distribution && wanted == ExprType::Number);
  }

  auto Require(const ExprNode& node, ExprNodeId operand, ExprType type) -> void {
    if (types_[operand] && !Fits(*types_[operand], type)) {
      Report(tree_.nodes[operand], fmt::format("`{}` takes {}s; {{}} is {{}}", SignOf(node, text_), ToText(type)),
             *types_[operand]);
    }
  }

  auto RequireAll(const ExprNode& node, ExprType type) -> void {
    for (const ExprNodeId operand : node.operands) {
      Require(node, operand, type);
    }
  }

  auto RequireComparable(const ExprNode& node) -> void {
    const auto left = types_[node.operands[0]];
    const auto right = types_[node.operands[1]];
    if (left && right) {
      Require(node, node.operands[1], *left == ExprType::Distribution ? ExprType::Number : *left);
    }
  }

  auto TypeOfIf(const ExprNode& node) -> std::optional<ExprType> {
    Require(node, node.operands[0], ExprType::Bool);
    const auto if_true = types_[node.operands[1]];
    const auto if_false = types_[node.operands[2]];
    if (!if_true || !if_false || *if_true == *if_false) {
      return if_true ? if_false : std::nullopt;
    }
    if (*if_true == ExprType::Bool || *if_false == ExprType::Bool) {
      const ExprNode& branch = tree_.nodes[node.operands[2]];
      Report(branch,
             fmt::format("both branches of `if` have one type; the first is {}, {{}} is {{}}", WithArticle(*if_true)),
             *if_false);
      return std::nullopt;
    }
    return ExprType::Distribution;
  }

  /// Reports `message` with the node's text and type filled in.
  auto Report(const ExprNode& node, std::string_view message, ExprType type) -> void {
    CHECK(node.source.empty(), "`{}`: {}", node.source, message);
    errors_.push_back(ErrorAt(node.begin, node.end, "expr-type",
                              fmt::format(fmt::runtime(message), Quoted(TextOf(node, text_)), WithArticle(type))));
  }

  const ExprTree& tree_;
  std::string_view text_;
  std::vector<ExprError>& errors_;
  IdVector<ExprNodeId, std::optional<ExprType>> types_;
};

}  // namespace

auto CheckTypes(const ExprTree& tree, std::string_view text, ExprKind kind, std::vector<ExprError>& errors)
    -> ExprType {
  return Checker(tree, text, errors).Run(kind);
}

}  // namespace shardc
