// Text of an expression to tokens. Faults in single tokens are reported here; the parser then sees what was meant,
// where that is clear, or Broken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"

namespace shardc {

enum class TokenKind {
  Number,
  /// With its quotes.
  Text,
  Name,
  Let,
  /// The `=` of a `let`.
  Assign,
  In,
  If,
  Then,
  Else,
  And,
  Or,
  Not,
  Plus,
  Minus,
  Times,
  Divide,
  Modulo,
  Power,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  Open,
  Close,
  Comma,
  /// Something that is not part of the language, and reported already.
  Broken,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  /// Bytes [begin, end) of the text.
  int begin = 0;
  int end = 0;
  double number = 0;
  /// An operator of another language that stands for one of ours, and was reported: what it takes and gives says
  /// nothing.
  bool is_foreign = false;

  auto length() const -> int { return end > begin ? end - begin : 1; }
};

/// Returns an error at bytes [begin, end) of the text, at least one long.
auto ErrorAt(int begin, int end, std::string_view name, std::string message) -> ExprError;

/// Returns a piece of the text for a message: in backticks, escaped, cut if it is long.
auto Quoted(std::string_view text) -> std::string;

/// Returns the tokens from byte `begin` on, in order, the last of them End. Faults are added to `errors`.
/// Requires: text.size() <= MaxExprBytes.
auto Lex(std::string_view text, std::vector<ExprError>& errors, size_t begin = 0) -> std::vector<Token>;

}  // namespace shardc
