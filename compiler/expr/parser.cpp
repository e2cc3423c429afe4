// Recursive descent over the grammar in expr.h, a function per line of it. An expression that a syntax fault cuts short
// becomes Broken, as its type says nothing. Only texts nested beyond MaxExprDepth are given up as a whole.
#include "compiler/expr/parser.h"

#include "compiler/expr/expression_parser.h"
#include "compiler/expr/known_names.h"

namespace shardc {

static constexpr std::initializer_list<BinaryOperator> OrOperators = {{TokenKind::Or, ExprNodeKind::Or}};
static constexpr std::initializer_list<BinaryOperator> AndOperators = {{TokenKind::And, ExprNodeKind::And}};
static constexpr std::initializer_list<BinaryOperator> Comparisons = {
    {TokenKind::Less, ExprNodeKind::Less},       {TokenKind::LessEqual, ExprNodeKind::LessEqual},
    {TokenKind::Greater, ExprNodeKind::Greater}, {TokenKind::GreaterEqual, ExprNodeKind::GreaterEqual},
    {TokenKind::Equal, ExprNodeKind::Equal},     {TokenKind::NotEqual, ExprNodeKind::NotEqual},
};
static constexpr std::initializer_list<BinaryOperator> SumOperators = {{TokenKind::Plus, ExprNodeKind::Add},
                                                                       {TokenKind::Minus, ExprNodeKind::Subtract}};
static constexpr std::initializer_list<BinaryOperator> ProductOperators = {{TokenKind::Times, ExprNodeKind::Multiply},
                                                                           {TokenKind::Divide, ExprNodeKind::Divide},
                                                                           {TokenKind::Modulo, ExprNodeKind::Modulo}};

static auto Find(std::initializer_list<BinaryOperator> operators, TokenKind token) -> std::optional<ExprNodeKind> {
  for (const BinaryOperator& candidate : operators) {
    if (candidate.token == token) {
      return candidate.node;
    }
  }
  return std::nullopt;
}

auto ExpressionParser::Run() -> void {
  if (token().kind == TokenKind::End) {
    errors_.push_back(ErrorAt(begin_, begin_ + 1, "expr-syntax",
                              fmt::format("the text is empty; {} is expected here", WithArticle(kind_))));
    Broken(token());
    return;
  }
  ParseExpression();
  if (token().kind != TokenKind::End) {
    ReportSyntax("an operator or the end", {"and", "or"});
    Broken(token());
  }
}

auto ExpressionParser::ParseChain(std::initializer_list<BinaryOperator> operators,
                                  ExprNodeId (ExpressionParser::*operand)()) -> ExprNodeId {
  ExprNodeId left = (this->*operand)();
  while (const auto kind = Find(operators, token().kind)) {
    const Token sign = Take();
    const ExprNodeId right = (this->*operand)();
    left = Operation(*kind, sign, {left, right});
  }
  return left;
}

auto ExpressionParser::ParseExpression() -> ExprNodeId {
  if (token().kind == TokenKind::Let || token().kind == TokenKind::If) {
    return token().kind == TokenKind::Let ? ParseLet() : ParseIf();
  }
  const ExprNodeId value = ParseChain(OrOperators, &ExpressionParser::ParseAnd);
  return token().kind == TokenKind::If ? ParseTernary() : value;
}

auto ExpressionParser::ParseTernary() -> ExprNodeId {
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token sign = Take();
  ReportFault(sign, "the condition comes first; write: if condition then a else b");
  ParseChain(OrOperators, &ExpressionParser::ParseAnd);
  if (Accept(TokenKind::Else)) {
    ParseExpression();
  } else {
    Skip();
  }
  return Broken(sign);
}

auto ExpressionParser::ParseLet() -> ExprNodeId {
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token sign = Take();
  const Token name = token();
  bool is_named = Accept(TokenKind::Name);
  if (!is_named) {
    ReportSyntax("a name");
    // A keyword in the name's place.
    if (Next().kind == TokenKind::Assign) {
      Take();
    }
  } else if (token().kind != TokenKind::Assign) {
    ReportSyntax("`=`");
  } else {
    is_named = !ReportTaken(name);
  }
  Accept(TokenKind::Assign);
  const ExprNodeId value = ParseExpression();
  if (!Accept(TokenKind::In)) {
    ReportSyntax("an operator or `in`", {"in", "and", "or"});
    if (!Accept(TokenKind::In)) {
      return Broken(sign);
    }
  }
  if (is_named) {
    locals_.emplace_back(TextOfToken(name), value);
  }
  const ExprNodeId body = ParseExpression();
  if (is_named) {
    locals_.pop_back();
  }
  tree_.nodes[body].begin = sign.begin;
  return body;
}

auto ExpressionParser::ParseIf() -> ExprNodeId {
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token sign = Take();
  ExprNodeId condition = ParseExpression();
  if (!Accept(TokenKind::Then)) {
    ReportSyntax("an operator or `then`", {"then", "and", "or"});
    Accept(TokenKind::Then);
    condition = Broken(sign);
  }
  ExprNodeId if_true = ParseExpression();
  if (!Accept(TokenKind::Else)) {
    ReportSyntax("an operator or `else`", {"else", "and", "or"});
    if (!Accept(TokenKind::Else)) {
      return Broken(sign);
    }
    if_true = Broken(sign);
  }
  const ExprNodeId if_false = ParseExpression();
  return Operation(ExprNodeKind::If, sign, {condition, if_true, if_false});
}

auto ExpressionParser::ParseAnd() -> ExprNodeId { return ParseChain(AndOperators, &ExpressionParser::ParseNot); }

auto ExpressionParser::ParseNot() -> ExprNodeId {
  if (token().kind != TokenKind::Not) {
    return ParseComparison();
  }
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token sign = Take();
  return Operation(ExprNodeKind::Not, sign, {ParseNot()});
}

auto ExpressionParser::ParseComparison() -> ExprNodeId {
  const ExprNodeId left = ParseSum();
  const auto kind = Find(Comparisons, token().kind);
  if (!kind) {
    return left;
  }
  const Token sign = Take();
  const ExprNodeId comparison = Operation(*kind, sign, {left, ParseSum()});
  if (Find(Comparisons, token().kind)) {
    ReportFault(token(), "comparisons do not chain; `a < b and b < c` compares three");
    Skip();
    return Broken(sign);
  }
  return comparison;
}

auto ExpressionParser::ParseSum() -> ExprNodeId { return ParseChain(SumOperators, &ExpressionParser::ParseProduct); }

auto ExpressionParser::ParseProduct() -> ExprNodeId {
  return ParseChain(ProductOperators, &ExpressionParser::ParseUnary);
}

auto ExpressionParser::ParseUnary() -> ExprNodeId {
  if (token().kind != TokenKind::Minus) {
    return ParsePower();
  }
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token sign = Take();
  if (token().kind == TokenKind::Number && Next().kind != TokenKind::Power) {
    Token number = Take();
    number.begin = sign.begin;
    return Leaf(ExprNodeKind::Number, number, -number.number);
  }
  return Operation(ExprNodeKind::Negate, sign, {ParseUnary()});
}

auto ExpressionParser::ParsePower() -> ExprNodeId {
  const ExprNodeId base = ParseAtom();
  if (token().kind != TokenKind::Power) {
    return base;
  }
  const Level level(*this);
  if (level.TooDeep()) {
    return base;
  }
  const Token sign = Take();
  return Operation(ExprNodeKind::Power, sign, {base, ParseUnary()});
}

auto ExpressionParser::ParseAtom() -> ExprNodeId {
  if (token().kind == TokenKind::Number) {
    const Token number = Take();
    return Leaf(ExprNodeKind::Number, number, number.number);
  }
  if (token().kind == TokenKind::Open) {
    return ParseParentheses();
  }
  if (token().kind == TokenKind::Name) {
    const Token name = Take();
    return token().kind == TokenKind::Open ? ParseCall(name) : ResolveName(name);
  }
  const Token place = token();
  const bool needs_parentheses =
      place.kind == TokenKind::If || place.kind == TokenKind::Let || place.kind == TokenKind::Not;
  ReportSyntax("a value", {}, needs_parentheses ? "; put it in parentheses" : "");
  return Broken(place);
}

auto ExpressionParser::ParseParentheses() -> ExprNodeId {
  const Level level(*this);
  if (level.TooDeep()) {
    return Broken(token());
  }
  const Token open = Take();
  const ExprNodeId inner = ParseExpression();
  if (!Close(open, "an operator or `)`")) {
    return Broken(open);
  }
  // The parentheses belong to the text of the node, which messages quote.
  tree_.nodes[inner].begin = open.begin;
  tree_.nodes[inner].end = Last().end;
  return inner;
}

auto ExpressionParser::Close(const Token& open, std::string_view expected) -> bool {
  if (Accept(TokenKind::Close)) {
    return true;
  }
  if (token().kind == TokenKind::End) {
    ReportFault(open, "`(` has no `)`");
    return false;
  }
  ReportSyntax(expected, {"and", "or"});
  // A comma, `then` or `else` inside the parentheses: what lies after it up to their end is skipped too.
  while (token().kind != TokenKind::Close && token().kind != TokenKind::End) {
    Take();
    Skip();
  }
  Accept(TokenKind::Close);
  return false;
}

auto ParseTree(std::string_view text, ExprKind kind, std::vector<ExprError>& errors) -> ExprTree {
  ExprTree tree;
  ExpressionParser(text, kind, errors, tree).Run();
  return tree;
}

}  // namespace shardc
