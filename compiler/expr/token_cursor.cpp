#include "compiler/expr/token_cursor.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/diag/diagnostics.h"

namespace shardc {

auto TokenCursor::Accept(TokenKind kind) -> bool {
  if (token().kind != kind) {
    return false;
  }
  ++at_;
  is_recovering_ = false;
  return true;
}

auto TokenCursor::Skip() -> void {
  int num_open = 0;
  for (; token().kind != TokenKind::End; ++at_) {
    const TokenKind kind = token().kind;
    const bool is_stop = kind == TokenKind::Close || kind == TokenKind::Comma || kind == TokenKind::In ||
                         kind == TokenKind::Then || kind == TokenKind::Else;
    if (num_open == 0 && is_stop) {
      return;
    }
    num_open += kind == TokenKind::Open ? 1 : kind == TokenKind::Close ? -1 : 0;
  }
}

auto TokenCursor::Report(const Token& token, std::string_view name, std::string message, std::string closest) -> void {
  errors_.push_back(ErrorAt(token.begin, token.end, name, std::move(message)));
  errors_.back().closest = std::move(closest);
}

auto TokenCursor::ReportFault(const Token& token, std::string message, std::string closest) -> void {
  if (!is_recovering_ && !is_given_up_) {
    Report(token, "expr-syntax", std::move(message), std::move(closest));
  }
  is_recovering_ = true;
}

auto TokenCursor::ReportSyntax(std::string_view expected, const std::vector<std::string_view>& words,
                               std::string_view remedy) -> void {
  if (token().kind == TokenKind::Broken) {
    is_recovering_ = true;
  } else {
    const std::string_view text = TextOfToken(token());
    const std::string found =
        token().kind == TokenKind::End ? "but the text ends" : fmt::format("found {}", Quoted(text));
    ReportFault(token(), fmt::format("expected {}, {}{}", expected, found, remedy),
                token().kind == TokenKind::Name ? ClosestWord(text, words) : "");
  }
  Skip();
}

auto TokenCursor::GiveUp(const Token& token, std::string message) -> void {
  if (!is_given_up_) {
    Report(token, "expr-syntax", std::move(message));
  }
  is_given_up_ = true;
  at_ = tokens_.size() - 1;
}

}  // namespace shardc
