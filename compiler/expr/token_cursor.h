// A text's tokens, one after another, and what a parser does at a syntax fault: it reports it where it is found, skips
// to the next `,`, `)`, `in`, `then` or `else` of the same level, and reports no other until one of them is taken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/lexer.h"

namespace shardc {

class TokenCursor {
 public:
  /// Reads the text from byte `begin` on. Requires: both outlive it.
  TokenCursor(std::string_view text, std::vector<ExprError>& errors, size_t begin)
      : text_(text), errors_(errors), tokens_(Lex(text, errors, begin)) {}

  auto token() const -> const Token& { return tokens_[at_]; }
  /// Returns the token after the current one; at the end, the end itself.
  auto Next() const -> const Token& { return token().kind == TokenKind::End ? token() : tokens_[at_ + 1]; }
  /// Returns the token before it. Requires: one was taken.
  auto Last() const -> const Token& { return tokens_[at_ - 1]; }
  auto TextOfToken(const Token& token) const -> std::string_view {
    return text_.substr(static_cast<size_t>(token.begin), static_cast<size_t>(token.end - token.begin));
  }

  auto Take() -> const Token& { return token().kind == TokenKind::End ? token() : tokens_[at_++]; }
  /// Takes a token of this kind, if it is at hand; parsing is then in step again.
  auto Accept(TokenKind kind) -> bool;
  auto Skip() -> void;

  auto Report(const Token& token, std::string_view name, std::string message, std::string closest = {}) -> void;
  /// Reports a syntax error; the tokens after it cannot be judged.
  auto ReportFault(const Token& token, std::string message, std::string closest = {}) -> void;
  /// Reports that the token at hand does not belong there, then skips. It may have been meant as one of `words`.
  auto ReportSyntax(std::string_view expected, const std::vector<std::string_view>& words = {},
                    std::string_view remedy = {}) -> void;
  /// Reports the last fault; no token is left.
  auto GiveUp(const Token& token, std::string message) -> void;

 private:
  std::string_view text_;
  std::vector<ExprError>& errors_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  /// After a fault, until a token is found in its place again.
  bool is_recovering_ = false;
  bool is_given_up_ = false;
};

}  // namespace shardc
