// The parser of expressions as a class: parser.cpp has the grammar, parser_calls.cpp calls and names. Included by these
// two only.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/expr/parser.h"
#include "compiler/expr/token_cursor.h"

namespace shardc {

struct BinaryOperator {
  TokenKind token;
  ExprNodeKind node;
};

/// The call whose text a parser reads.
struct InlinedCall {
  int row = -1;
  std::vector<std::string_view> parameters;
  /// Nodes of the same tree.
  std::vector<ExprNodeId> arguments;
  /// Place of the call in the expression's own text.
  int place_begin = 0;
  int place_end = 0;
};

/// Reads one text into a tree.
class ExpressionParser : TokenCursor {
 public:
  /// Reads the text from byte `begin` on.
  ExpressionParser(std::string_view text, ExprKind kind, std::vector<ExprError>& errors, ExprTree& tree,
                   const InlinedCall* inlined = nullptr, size_t begin = 0)
      : TokenCursor(text, errors, begin),
        text_(text),
        kind_(kind),
        errors_(errors),
        tree_(tree),
        inlined_(inlined),
        begin_(static_cast<int>(begin)) {}

  /// Adds the nodes of the text to the tree, the root last.
  auto Run() -> void;

 private:
  /// Counts one level of nesting while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    auto operator=(const Level&) -> Level& = delete;

    auto TooDeep() const -> bool {
      if (parser_.depth_ <= MaxExprDepth) {
        return false;
      }
      parser_.GiveUp(parser_.token(), fmt::format("nested more than {} levels deep", MaxExprDepth));
      return true;
    }

   private:
    ExpressionParser& parser_;
  };
  auto Node(ExprNodeId id) const -> const ExprNode& { return tree_.nodes[id]; }

  /// Adds a node that spans its operator, `sign`.
  auto Add(ExprNodeKind kind, const Token& sign, std::vector<ExprNodeId> operands) -> ExprNodeId {
    return tree_.nodes.Add({.kind = kind,
                            .operands = std::move(operands),
                            .source = inlined_ == nullptr ? std::string_view() : text_,
                            .library = inlined_ == nullptr ? -1 : inlined_->row,
                            .begin = sign.begin,
                            .end = sign.end,
                            .operator_begin = sign.begin,
                            .operator_end = sign.end,
                            .place_begin = inlined_ == nullptr ? sign.begin : inlined_->place_begin,
                            .place_end = inlined_ == nullptr ? sign.end : inlined_->place_end});
  }

  auto Leaf(ExprNodeKind kind, const Token& token, double number = 0, int row = -1) -> ExprNodeId {
    const ExprNodeId leaf = Add(kind, token, {});
    tree_.nodes[leaf].number = number;
    tree_.nodes[leaf].row = row;
    return leaf;
  }

  auto Broken(const Token& token) -> ExprNodeId { return Leaf(ExprNodeKind::Broken, token); }

  /// Adds an operation; a Broken node for an operator of another language, which was reported, so types say nothing of
  /// it.
  auto Operation(ExprNodeKind kind, const Token& sign, std::vector<ExprNodeId> operands) -> ExprNodeId {
    const int begin = operands.empty() ? sign.begin : std::min(sign.begin, Node(operands.front()).begin);
    const int end = operands.empty() ? sign.end : std::max(sign.end, Node(operands.back()).end);
    const ExprNodeId operation = Add(sign.is_foreign ? ExprNodeKind::Broken : kind, sign, std::move(operands));
    tree_.nodes[operation].begin = begin;
    tree_.nodes[operation].end = end;
    return operation;
  }

  // The grammar.
  /// Parses operand (operator operand)*, from the left.
  auto ParseChain(std::initializer_list<BinaryOperator> operators, ExprNodeId (ExpressionParser::*operand)())
      -> ExprNodeId;
  auto ParseExpression() -> ExprNodeId;
  /// Parses a `let`: it is its body, parsed with the name bound, and adds no node.
  auto ParseLet() -> ExprNodeId;
  auto ParseIf() -> ExprNodeId;
  /// Reports Python's `value if condition else other`. Called at the `if`.
  auto ParseTernary() -> ExprNodeId;
  auto ParseAnd() -> ExprNodeId;
  auto ParseNot() -> ExprNodeId;
  auto ParseComparison() -> ExprNodeId;
  auto ParseSum() -> ExprNodeId;
  auto ParseProduct() -> ExprNodeId;
  auto ParseUnary() -> ExprNodeId;
  auto ParsePower() -> ExprNodeId;
  auto ParseAtom() -> ExprNodeId;
  auto ParseParentheses() -> ExprNodeId;
  /// Takes the `)` of `open`. False if something else was at hand; that is reported.
  auto Close(const Token& open, std::string_view expected) -> bool;

  // Calls and names.
  auto ParseCall(const Token& name) -> ExprNodeId;
  /// Parses a copy after its `(`.
  auto ParseCopy(int row, const Token& name, const Token& open) -> ExprNodeId;
  /// Returns the pieces of a name, between the `{expr}` whose values become operands.
  auto ParseTemplate(const Token& token, std::vector<ExprNodeId>& operands) -> std::vector<std::string>;
  /// Adds the operations of a library function. Returns the node that stands for its call.
  auto Inline(int row, const Token& name, const std::vector<ExprNodeId>& arguments) -> ExprNodeId;
  auto ResolveName(const Token& token) -> ExprNodeId;
  auto FindLocal(std::string_view name) const -> std::optional<ExprNodeId>;
  auto FindArgument(std::string_view name) const -> std::optional<ExprNodeId>;
  auto ResolveFunction(const Token& token) -> std::optional<int>;
  auto ValuesInReach() const -> std::vector<std::string_view>;
  auto ReportUnknown(const Token& token, const std::vector<std::string_view>& known) -> void;
  /// Reports the name of a `let` that has a meaning already. Returns true if it has one.
  auto ReportTaken(const Token& token) -> bool;

  std::string_view text_;
  ExprKind kind_;
  std::vector<ExprError>& errors_;
  ExprTree& tree_;
  /// The names of the `let`s around what is being read, and their values.
  std::vector<std::pair<std::string_view, ExprNodeId>> locals_;
  const InlinedCall* inlined_;
  int begin_;
  int depth_ = 0;
};

}  // namespace shardc
