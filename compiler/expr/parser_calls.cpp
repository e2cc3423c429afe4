// Calls and names: what a name means where it stands, and how many arguments a function takes.
//
// A call of a function that is written in the language becomes the operations of its text, read by a parser of their
// own that knows the arguments by the parameters' names. These texts are rows of a table and have no faults.
#include "compiler/base/check.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/expr/expression_parser.h"
#include "compiler/expr/known_names.h"
#include "compiler/expr/names.h"

namespace shardc {

auto ExpressionParser::ParseCall(const Token& name) -> ExprNodeId {
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
  const ExprNodeId call =
      function.is_library() ? Inline(*row, name, arguments) : Operation(ExprNodeKind::Call, name, std::move(arguments));
  tree_.nodes[call].row = *row;
  tree_.nodes[call].end = end;
  return call;
}

auto ExpressionParser::ParseCopy(int row, const Token& name, const Token& open) -> ExprNodeId {
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

auto ExpressionParser::ParseTemplate(const Token& token, std::vector<ExprNodeId>& operands)
    -> std::vector<std::string> {
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
    ExpressionParser inner(text.substr(0, close), kind_, errors_, tree_, inlined_, open + 1);
    inner.locals_ = locals_;
    inner.depth_ = depth_;
    inner.Run();
    operands.push_back(tree_.root());
    at = close + 1;
  }
}

auto ExpressionParser::Inline(int row, const Token& name, const std::vector<ExprNodeId>& arguments) -> ExprNodeId {
  if (tree_.nodes.size() > MaxExprOperations) {
    GiveUp(name, fmt::format("the functions up to here take more than {} operations", MaxExprOperations));
    return Broken(name);
  }
  const ExprFunctionRow& function = ExprFunctionRows()[static_cast<size_t>(row)];
  const InlinedCall inlined{.row = row,
                            .parameters = ParameterNames(function),
                            .arguments = arguments,
                            .place_begin = inlined_ == nullptr ? name.begin : inlined_->place_begin,
                            .place_end = inlined_ == nullptr ? name.end : inlined_->place_end};
  const auto parse = [&](std::string_view text) {
    const size_t num_errors = errors_.size();
    ExpressionParser(text, kind_, errors_, tree_, &inlined).Run();
    CHECK(errors_.size() == num_errors, "`{}`: {}", text, errors_.back().message);
    return tree_.root();
  };
  const ExprNodeId domain = function.domain.empty() ? Leaf(ExprNodeKind::Bool, name, 1) : parse(function.domain);
  std::vector<ExprNodeId> operands{domain, parse(function.body)};
  operands.insert(operands.end(), arguments.begin(), arguments.end());
  return Add(ExprNodeKind::Library, name, std::move(operands));
}

auto ExpressionParser::ResolveName(const Token& token) -> ExprNodeId {
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

auto ExpressionParser::ResolveFunction(const Token& token) -> std::optional<int> {
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

auto ExpressionParser::FindLocal(std::string_view name) const -> std::optional<ExprNodeId> {
  const auto found =
      std::find_if(locals_.begin(), locals_.end(), [&](const auto& local) { return local.first == name; });
  return found == locals_.end() ? std::nullopt : std::optional(found->second);
}

auto ExpressionParser::FindArgument(std::string_view name) const -> std::optional<ExprNodeId> {
  if (inlined_ == nullptr) {
    return std::nullopt;
  }
  const auto found = std::find(inlined_->parameters.begin(), inlined_->parameters.end(), name);
  return found == inlined_->parameters.end()
             ? std::nullopt
             : std::optional(inlined_->arguments[static_cast<size_t>(found - inlined_->parameters.begin())]);
}

auto ExpressionParser::ValuesInReach() const -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const auto& [local, value] : locals_) {
    names.push_back(local);
  }
  const std::vector<std::string_view> others = KnownValues(kind_);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

auto ExpressionParser::ReportUnknown(const Token& token, const std::vector<std::string_view>& known) -> void {
  UnknownName unknown = DescribeUnknown(TextOfToken(token), kind_, known);
  Report(token, "expr-unknown-name", std::move(unknown.message), std::move(unknown.closest));
}

auto ExpressionParser::ReportTaken(const Token& token) -> bool {
  const std::string_view name = TextOfToken(token);
  std::string meaning;
  if (const auto row = FindRow(ExprVariableRows(), name)) {
    meaning = fmt::format("a variable, known in {}", ListedKinds(ExprVariableRows()[static_cast<size_t>(*row)].kinds));
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

}  // namespace shardc
