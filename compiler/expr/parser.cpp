// Recursive descent over the grammar in expr.h, a function a line of it. An expression that a syntax fault cuts short
// becomes Broken, as its type says nothing. Only texts nested beyond MaxExprDepth are given up as a whole.
//
// A call of a function that is written in the language becomes the operations of its text, read by a parser of their
// own that knows the arguments by the parameters' names. These texts are rows of a table and have no faults.

#include "compiler/expr/parser.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/expr/known_names.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/names.h"
#include "compiler/expr/token_cursor.h"

namespace shardc {

namespace {

struct BinaryOperator {
  TokenKind token;
  ExprNodeKind node;
};

constexpr std::initializer_list<BinaryOperator> OrOperators = {{TokenKind::Or, ExprNodeKind::Or}};
constexpr std::initializer_list<BinaryOperator> AndOperators = {{TokenKind::And, ExprNodeKind::And}};
constexpr std::initializer_list<BinaryOperator> Comparisons = {
    {TokenKind::Less, ExprNodeKind::Less},       {TokenKind::LessEqual, ExprNodeKind::LessEqual},
    {TokenKind::Greater, ExprNodeKind::Greater}, {TokenKind::GreaterEqual, ExprNodeKind::GreaterEqual},
    {TokenKind::Equal, ExprNodeKind::Equal},     {TokenKind::NotEqual, ExprNodeKind::NotEqual},
};
constexpr std::initializer_list<BinaryOperator> SumOperators = {{TokenKind::Plus, ExprNodeKind::Add},
                                                                {TokenKind::Minus, ExprNodeKind::Subtract}};
constexpr std::initializer_list<BinaryOperator> ProductOperators = {{TokenKind::Times, ExprNodeKind::Multiply},
                                                                    {TokenKind::Divide, ExprNodeKind::Divide},
                                                                    {TokenKind::Modulo, ExprNodeKind::Modulo}};

/// The call whose text a parser reads.
struct Inlined {
  int row = -1;
  std::vector<std::string_view> parameters;
  /// Nodes of the same tree.
  std::vector<ExprNodeId> arguments;
  /// Of the call in the expression's own text.
  int place_begin = 0;
  int place_end = 0;
};

class Parser : TokenCursor {
 public:
  /// Reads the text from byte `begin` on.
  Parser(std::string_view text, ExprKind kind, std::vector<ExprError>& errors, ExprTree& tree,
         const Inlined* inlined = nullptr, size_t begin = 0)
      : TokenCursor(text, errors, begin),
        text_(text),
        kind_(kind),
        errors_(errors),
        tree_(tree),
        inlined_(inlined),
        begin_(static_cast<int>(begin)) {}

  auto Run() -> void {
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

 private:
  /// Counts one level of nesting while it lives.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { ++parser_.depth_; }
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
    Parser& parser_;
  };

  auto Node(ExprNodeId id) const -> const ExprNode& { return tree_.nodes[id]; }

  /// A node that spans its operator, `sign`.
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

  auto Operation(ExprNodeKind kind, const Token& sign, std::vector<ExprNodeId> operands) -> ExprNodeId {
    const int begin = operands.empty() ? sign.begin : std::min(sign.begin, Node(operands.front()).begin);
    const int end = operands.empty() ? sign.end : std::max(sign.end, Node(operands.back()).end);
    const ExprNodeId operation = Add(kind, sign, std::move(operands));
    tree_.nodes[operation].begin = begin;
    tree_.nodes[operation].end = end;
    return operation;
  }

  static auto Find(std::initializer_list<BinaryOperator> operators, TokenKind token) -> std::optional<ExprNodeKind> {
    for (const BinaryOperator& candidate : operators) {
      if (candidate.token == token) {
        return candidate.node;
      }
    }
    return std::nullopt;
  }

  /// operand (operator operand)*, from the left.
  auto ParseChain(std::initializer_list<BinaryOperator> operators, ExprNodeId (Parser::*operand)()) -> ExprNodeId {
    ExprNodeId left = (this->*operand)();
    while (const auto kind = Find(operators, token().kind)) {
      const Token sign = Take();
      const ExprNodeId right = (this->*operand)();
      left = Operation(*kind, sign, {left, right});
    }
    return left;
  }

  auto ParseExpression() -> ExprNodeId {
    return token().kind == TokenKind::Let  ? ParseLet()
           : token().kind == TokenKind::If ? ParseIf()
                                           : ParseChain(OrOperators, &Parser::ParseAnd);
  }

  /// A `let` is its body, parsed with the name bound; it adds no node.
  auto ParseLet() -> ExprNodeId {
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

  /// Whether the name of a `let` means something else already; that is reported.
  auto ReportTaken(const Token& token) -> bool {
    const std::string_view name = TextOfToken(token);
    std::string meaning;
    if (const auto row = FindRow(ExprVariableRows(), name)) {
      meaning =
          fmt::format("a variable, known in {}", ListedKinds(ExprVariableRows()[static_cast<size_t>(*row)].kinds));
    } else if (FindRow(ExprConstantRows(), name)) {
      meaning = "a constant";
    } else if (FindLocal(name)) {
      meaning = "the name of a `let` around this one";
    }
    CHECK(meaning.empty() || inlined_ == nullptr, "`{}`: `{}` is {}", text_, name, meaning);
    if (!meaning.empty()) {
      Report(token, "expr-name-taken", fmt::format("{} is {}", Quoted(name), meaning));
    }
    return !meaning.empty();
  }

  auto FindLocal(std::string_view name) const -> std::optional<ExprNodeId> {
    const auto found =
        std::find_if(locals_.begin(), locals_.end(), [&](const auto& local) { return local.first == name; });
    return found == locals_.end() ? std::nullopt : std::optional(found->second);
  }

  auto ParseIf() -> ExprNodeId {
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

  auto ParseAnd() -> ExprNodeId { return ParseChain(AndOperators, &Parser::ParseNot); }

  auto ParseNot() -> ExprNodeId {
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

  auto ParseComparison() -> ExprNodeId {
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

  auto ParseSum() -> ExprNodeId { return ParseChain(SumOperators, &Parser::ParseProduct); }

  auto ParseProduct() -> ExprNodeId { return ParseChain(ProductOperators, &Parser::ParseUnary); }

  auto ParseUnary() -> ExprNodeId {
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

  auto ParsePower() -> ExprNodeId {
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

  auto ParseAtom() -> ExprNodeId {
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

  auto ParseParentheses() -> ExprNodeId {
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

  /// Takes the `)` of `open`. False if something else was at hand; that is reported.
  auto Close(const Token& open, std::string_view expected) -> bool {
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

  auto ParseCall(const Token& name) -> ExprNodeId {
    const Level level(*this);
    if (level.TooDeep()) {
      return Broken(token());
    }
    const auto row = ResolveFunction(name);
    const Token open = Take();
    if (row && ExprFunctionRows()[static_cast<size_t>(*row)].takes_name()) {
      return ParseCopy(*row, name, open);
    }
    std::vector<ExprNodeId> arguments;
    if (token().kind != TokenKind::Close && token().kind != TokenKind::End) {
      do {
        arguments.push_back(ParseExpression());
      } while (Accept(TokenKind::Comma));
    }
    // Where the list of arguments is not whole, its length says nothing.
    if (!Close(open, "an operator, `,` or `)`") || !row) {
      return Broken(name);
    }
    const ExprFunctionRow& function = ExprFunctionRows()[static_cast<size_t>(*row)];
    const auto num_arguments = static_cast<int>(arguments.size());
    if (num_arguments != function.num_parameters()) {
      Report(name, "expr-argument-count", WrongCount(function, num_arguments));
      return Broken(name);
    }
    const int end = Last().end;
    const ExprNodeId call = function.is_library() ? Inline(*row, name, arguments)
                                                  : Operation(ExprNodeKind::Call, name, std::move(arguments));
    tree_.nodes[call].row = *row;
    tree_.nodes[call].end = end;
    return call;
  }

  /// After the `(`.
  auto ParseCopy(int row, const Token& name, const Token& open) -> ExprNodeId {
    const ExprFunctionRow& function = ExprFunctionRows()[static_cast<size_t>(row)];
    const std::string_view noun = function.Is(ElementFunction::Copy) ? "parameter" : "tensor";
    const Token text = token();
    if (!Accept(TokenKind::Text)) {
      ReportSyntax(fmt::format("the name of a {} in quotes", noun));
    }
    std::vector<ExprNodeId> operands;
    std::vector<std::string> texts;
    if (text.kind == TokenKind::Text) {
      texts = ParseTemplate(text, operands);
    }
    while (Accept(TokenKind::Comma)) {
      operands.push_back(ParseExpression());
    }
    if (!Close(open, "an operator, `,` or `)`") || texts.empty()) {
      return Broken(name);
    }
    const size_t num_indices = operands.size() + 1 - texts.size();
    if (num_indices > 2) {
      Report(name, "expr-argument-count",
             fmt::format("`{}` takes the name of a {} and up to 2 indices, here {} are given", function.name, noun,
                         num_indices));
      return Broken(name);
    }
    const ExprNodeId copy = Add(ExprNodeKind::Copy, name, std::move(operands));
    tree_.nodes[copy].texts = std::move(texts);
    tree_.nodes[copy].row = row;
    tree_.nodes[copy].end = Last().end;
    return copy;
  }

  /// The pieces of a name, between the `{expr}` whose values become operands.
  auto ParseTemplate(const Token& token, std::vector<ExprNodeId>& operands) -> std::vector<std::string> {
    const std::string_view text = text_.substr(0, static_cast<size_t>(token.end) - 1);
    std::vector<std::string> texts;
    for (auto at = static_cast<size_t>(token.begin) + 1;;) {
      const size_t open = std::min(text.find('{', at), text.size());
      texts.emplace_back(text.substr(at, open - at));
      if (open == text.size()) {
        return texts;
      }
      const size_t close = text.find('}', open);
      if (close == std::string_view::npos) {
        errors_.push_back(ErrorAt(static_cast<int>(open), static_cast<int>(open) + 1, "expr-syntax", "`{` has no `}`"));
        return texts;
      }
      Parser inner(text.substr(0, close), kind_, errors_, tree_, inlined_, open + 1);
      inner.locals_ = locals_;
      inner.depth_ = depth_;
      inner.Run();
      operands.push_back(tree_.root());
      at = close + 1;
    }
  }

  /// The operations of a library function, and the node that stands for its call.
  auto Inline(int row, const Token& name, const std::vector<ExprNodeId>& arguments) -> ExprNodeId {
    if (tree_.nodes.size() > MaxExprOperations) {
      GiveUp(name, fmt::format("the functions up to here take more than {} operations", MaxExprOperations));
      return Broken(name);
    }
    const ExprFunctionRow& function = ExprFunctionRows()[static_cast<size_t>(row)];
    const Inlined inlined{.row = row,
                          .parameters = ParameterNames(function),
                          .arguments = arguments,
                          .place_begin = inlined_ == nullptr ? name.begin : inlined_->place_begin,
                          .place_end = inlined_ == nullptr ? name.end : inlined_->place_end};
    const auto parse = [&](std::string_view text) {
      const size_t num_errors = errors_.size();
      Parser(text, kind_, errors_, tree_, &inlined).Run();
      CHECK(errors_.size() == num_errors, "`{}`: {}", text, errors_.back().message);
      return tree_.root();
    };
    const ExprNodeId domain = function.domain.empty() ? Leaf(ExprNodeKind::Bool, name, 1) : parse(function.domain);
    std::vector<ExprNodeId> operands{domain, parse(function.body)};
    operands.insert(operands.end(), arguments.begin(), arguments.end());
    return Add(ExprNodeKind::Library, name, std::move(operands));
  }

  auto ResolveName(const Token& token) -> ExprNodeId {
    const std::string_view name = TextOfToken(token);
    if (const auto local = FindLocal(name)) {
      return Add(ExprNodeKind::Local, token, {*local});
    }
    if (const auto argument = FindArgument(name)) {
      return Add(ExprNodeKind::Parameter, token, {*argument});
    }
    if (const auto row = FindRow(ExprConstantRows(), name)) {
      const ExprConstantRow& constant = ExprConstantRows()[static_cast<size_t>(*row)];
      return Leaf(constant.type == ExprType::Bool ? ExprNodeKind::Bool : ExprNodeKind::Number, token, constant.value);
    }
    if (const auto row = FindRow(ExprVariableRows(), name)) {
      const std::vector<ExprKind>& kinds = ExprVariableRows()[static_cast<size_t>(*row)].kinds;
      if (std::find(kinds.begin(), kinds.end(), kind_) != kinds.end()) {
        return Leaf(ExprNodeKind::Variable, token, 0, *row);
      }
    } else if (const auto function = FindRow(ExprFunctionRows(), name)) {
      const ExprFunctionRow& found = ExprFunctionRows()[static_cast<size_t>(*function)];
      if (found.IsKnownIn(kind_)) {
        Report(token, "expr-argument-count", WrongCount(found, 0));
        return Broken(token);
      }
    }
    ReportUnknown(token, ValuesInReach());
    return Broken(token);
  }

  auto FindArgument(std::string_view name) const -> std::optional<ExprNodeId> {
    if (inlined_ == nullptr) {
      return std::nullopt;
    }
    const auto found = std::find(inlined_->parameters.begin(), inlined_->parameters.end(), name);
    return found == inlined_->parameters.end()
               ? std::nullopt
               : std::optional(inlined_->arguments[static_cast<size_t>(found - inlined_->parameters.begin())]);
  }

  auto ResolveFunction(const Token& token) -> std::optional<int> {
    const std::string_view name = TextOfToken(token);
    const auto row = FindRow(ExprFunctionRows(), name);
    if (row && ExprFunctionRows()[static_cast<size_t>(*row)].IsKnownIn(kind_)) {
      CHECK(inlined_ == nullptr || *row < inlined_->row, "`{}` calls `{}`, which does not come before it", text_, name);
      return row;
    }
    const std::vector<std::string_view> values = ValuesInReach();
    if (std::find(values.begin(), values.end(), name) != values.end()) {
      Report(token, "expr-type", fmt::format("`{}` is not a function; a product is written with `*`", name));
      return std::nullopt;
    }
    ReportUnknown(token, KnownFunctions(kind_));
    return std::nullopt;
  }

  auto ValuesInReach() const -> std::vector<std::string_view> {
    std::vector<std::string_view> names;
    for (const auto& [local, value] : locals_) {
      names.push_back(local);
    }
    const std::vector<std::string_view> others = KnownValues(kind_);
    names.insert(names.end(), others.begin(), others.end());
    return names;
  }

  auto ReportUnknown(const Token& token, const std::vector<std::string_view>& known) -> void {
    UnknownName unknown = DescribeUnknown(TextOfToken(token), kind_, known);
    Report(token, "expr-unknown-name", std::move(unknown.message), std::move(unknown.closest));
  }

  std::string_view text_;
  ExprKind kind_;
  std::vector<ExprError>& errors_;
  ExprTree& tree_;
  /// The names of the `let`s around what is being read, and their values.
  std::vector<std::pair<std::string_view, ExprNodeId>> locals_;
  const Inlined* inlined_;
  int begin_;
  int depth_ = 0;
};

}  // namespace

auto ParseTree(std::string_view text, ExprKind kind, std::vector<ExprError>& errors) -> ExprTree {
  ExprTree tree;
  Parser(text, kind, errors, tree).Run();
  return tree;
}

}  // namespace shardc
