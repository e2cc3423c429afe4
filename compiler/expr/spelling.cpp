// 1. Write numbers in their shortest form, and other tokens as they are.
// 2. Put a blank between two tokens, but for parentheses, before commas, and after a sign that has no left operand.
#include "compiler/expr/spelling.h"

#include <fmt/format.h>

#include "compiler/expr/lexer.h"

namespace shardc {

/// Returns true for a token that an operand ends with.
static auto EndsOperand(TokenKind kind) -> bool {
  return kind == TokenKind::Number || kind == TokenKind::Text || kind == TokenKind::Name || kind == TokenKind::Close;
}

auto SpellingOf(std::string_view text, ExprKind kind) -> std::string {
  if (!ParseExpr(text, kind).ok()) {
    return std::string(text);
  }
  std::vector<ExprError> none;
  std::string spelling;
  TokenKind before = TokenKind::Open;
  bool is_after_sign = false;
  for (const Token& token : Lex(text, none)) {
    const bool is_call = token.kind == TokenKind::Open && before == TokenKind::Name;
    const bool is_closing =
        token.kind == TokenKind::Close || token.kind == TokenKind::Comma || token.kind == TokenKind::End;
    if (before != TokenKind::Open && !is_call && !is_closing && !is_after_sign) {
      spelling += ' ';
    }
    const auto source = text.substr(static_cast<size_t>(token.begin), static_cast<size_t>(token.end - token.begin));
    spelling += token.kind == TokenKind::Number ? fmt::format("{}", token.number) : std::string(source);
    is_after_sign = (token.kind == TokenKind::Plus || token.kind == TokenKind::Minus) && !EndsOperand(before);
    before = token.kind;
  }
  return spelling;
}

}  // namespace shardc
