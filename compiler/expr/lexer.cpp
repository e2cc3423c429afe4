#include "compiler/expr/lexer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/base/printable.h"

namespace shardc {

namespace {

struct Spelling {
  std::string_view text;
  TokenKind kind;
  /// Empty, or the message for a spelling of other languages and the right one.
  std::string_view fault = {};
  std::string_view right = {};
};

constexpr Spelling Keywords[] = {
    {"if", TokenKind::If},
    {"then", TokenKind::Then},
    {"else", TokenKind::Else},
    {"and", TokenKind::And},
    {"or", TokenKind::Or},
    {"not", TokenKind::Not},
    {"let", TokenKind::Let},
    {"in", TokenKind::In},
    {"is", TokenKind::Equal, "`is` is not an operator; write `==` for equality", "=="},
    {"is not", TokenKind::NotEqual, "`is not` is not an operator; write `!=`", "!="},
};

// Where one begins with another, the longer comes first.
constexpr Spelling Symbols[] = {
    {"//", TokenKind::Divide, "`//` is not an operator; write floor(a / b) for a // b"},
    {"**", TokenKind::Power, "`**` is not an operator; write `^` for a power", "^"},
    {"&&", TokenKind::And, "`&&` is not an operator; write `and` for both conditions", "and"},
    {"||", TokenKind::Or, "`||` is not an operator; write `or` for either condition", "or"},
    {"<=", TokenKind::LessEqual},
    {">=", TokenKind::GreaterEqual},
    {"==", TokenKind::Equal},
    {"!=", TokenKind::NotEqual},
    {"=", TokenKind::Equal, "`=` is not an operator; write `==` for equality, and arguments without names", "=="},
    {"!", TokenKind::Not, "`!` is not an operator; write `not` for the opposite", "not"},
    {"?", TokenKind::Broken, "`?` is not an operator; write: if condition then a else b"},
    {"<", TokenKind::Less},
    {">", TokenKind::Greater},
    {"+", TokenKind::Plus},
    {"-", TokenKind::Minus},
    {"*", TokenKind::Times},
    {"/", TokenKind::Divide},
    {"%", TokenKind::Modulo},
    {"^", TokenKind::Power},
    {"(", TokenKind::Open},
    {")", TokenKind::Close},
    {",", TokenKind::Comma},
};

auto IsDigit(char c) -> bool { return c >= '0' && c <= '9'; }
auto IsNameStart(char c) -> bool { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
auto IsNamePart(char c) -> bool { return IsNameStart(c) || IsDigit(c); }
auto IsSpace(char c) -> bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
auto IsSpaceOrEnd(std::string_view text, size_t at) -> bool { return at >= text.size() || IsSpace(text[at]); }
auto IsAscii(char c) -> bool { return static_cast<unsigned char>(c) < 0x80; }

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<ExprError>& errors, size_t begin)
      : text_(text), errors_(errors), at_(begin) {}

  auto Run() -> std::vector<Token> {
    while (true) {
      const std::string_view rest = text_.substr(at_);
      if (rest.empty()) {
        Push(TokenKind::End, 0);
        return std::move(tokens_);
      }
      if (IsSpace(rest.front())) {
        ++at_;
      } else if (IsDigit(rest.front()) || (rest.front() == '.' && rest.size() > 1 && IsDigit(rest[1]))) {
        TakeNumber(rest);
      } else if (IsNameStart(rest.front())) {
        TakeName(rest);
      } else if (rest.front() == '"' || rest.front() == '\'') {
        TakeText(rest);
      } else {
        TakeSymbol(rest);
      }
    }
  }

 private:
  auto Push(TokenKind kind, size_t length, double number = 0) -> void {
    const auto begin = static_cast<int>(at_);
    at_ += length;
    tokens_.push_back({kind, begin, static_cast<int>(at_), number});
  }

  /// Adds a word or an operator. One of another language is reported, and stands for one of ours.
  auto PushSpelling(const Spelling& spelling) -> void {
    if (!spelling.fault.empty()) {
      Report(spelling.text.size(), "expr-syntax", std::string(spelling.fault), spelling.right);
    }
    Push(spelling.kind, spelling.text.size());
    tokens_.back().is_foreign = !spelling.fault.empty();
  }

  auto Report(size_t length, std::string_view name, std::string message, std::string_view closest = {}) -> void {
    errors_.push_back(ErrorAt(static_cast<int>(at_), static_cast<int>(at_ + length), name, std::move(message)));
    errors_.back().closest = closest;
  }

  // A malformed number stays a number for the parser, so that its place in the expression is not a second fault.
  auto TakeNumber(std::string_view rest) -> void {
    size_t length = 0;
    while (length < rest.size() &&
           (IsNamePart(rest[length]) || rest[length] == '.' ||
            ((rest[length] == '+' || rest[length] == '-') && (rest[length - 1] == 'e' || rest[length - 1] == 'E')))) {
      ++length;
    }
    const std::string_view word = rest.substr(0, length);
    double number = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (end != word.data() + word.size() || status == std::errc::invalid_argument) {
      Report(length, "expr-syntax", fmt::format("{} is not a number", Quoted(word)));
      number = 0;
    } else if (status == std::errc::result_out_of_range) {
      Report(length, "expr-domain", fmt::format("{} is beyond double precision, 4.9e-324 to 1.8e308", Quoted(word)));
      number = 0;
    }
    Push(TokenKind::Number, length, number);
  }

  auto TakeName(std::string_view rest) -> void {
    constexpr std::string_view TwoWords = "is not";
    const auto end = std::find_if_not(rest.begin(), rest.end(), IsNamePart);
    const bool is_two = rest.starts_with(TwoWords) && IsSpaceOrEnd(rest, TwoWords.size());
    const auto word = rest.substr(0, is_two ? TwoWords.size() : static_cast<size_t>(end - rest.begin()));
    const auto keyword = std::find_if(std::begin(Keywords), std::end(Keywords),
                                      [&](const Spelling& spelling) { return spelling.text == word; });
    if (keyword == std::end(Keywords)) {
      Push(TokenKind::Name, word.size());
    } else {
      PushSpelling(*keyword);
    }
  }

  auto TakeText(std::string_view rest) -> void {
    const size_t end = rest.find(rest.front(), 1);
    if (end == std::string_view::npos) {
      Report(rest.size(), "expr-syntax", fmt::format("{} has no end", Quoted(rest)));
      Push(TokenKind::Broken, rest.size());
      return;
    }
    Push(TokenKind::Text, end + 1);
  }

  /// Returns true if there is one token after a `let`, where its name belongs.
  auto IsBehindLet() const -> bool { return tokens_.size() >= 2 && tokens_[tokens_.size() - 2].kind == TokenKind::Let; }

  auto TakeSymbol(std::string_view rest) -> void {
    const auto symbol = std::find_if(std::begin(Symbols), std::end(Symbols),
                                     [&](const Spelling& spelling) { return rest.starts_with(spelling.text); });
    if (symbol != std::end(Symbols) && symbol->text == "=" && IsBehindLet()) {
      Push(TokenKind::Assign, 1);
    } else if (symbol != std::end(Symbols)) {
      PushSpelling(*symbol);
    } else {
      // Bytes of other scripts are one fault, not one each.
      const auto end = std::find_if(rest.begin(), rest.end(), IsAscii);
      const size_t length = std::max<size_t>(1, static_cast<size_t>(end - rest.begin()));
      // The `:` of a choice is reported with its `?`.
      if (rest.front() != ':' || text_.substr(0, at_).find('?') == std::string_view::npos) {
        Report(length, "expr-syntax", fmt::format("{} is not part of the language", Quoted(rest.substr(0, length))));
      }
      Push(TokenKind::Broken, length);
    }
  }

  std::string_view text_;
  std::vector<ExprError>& errors_;
  std::vector<Token> tokens_;
  size_t at_;
};

}  // namespace

auto ErrorAt(int begin, int end, std::string_view name, std::string message) -> ExprError {
  return {.name = std::string(name),
          .message = std::move(message),
          .column = begin + 1,
          .length = std::max(1, end - begin),
          .closest = {}};
}

auto Quoted(std::string_view text) -> std::string {
  constexpr size_t MaxQuoted = 40;
  if (text.size() <= MaxQuoted) {
    return fmt::format("`{}`", Escaped(text));
  }
  return fmt::format("`{}...`", Escaped(text.substr(0, MaxQuoted - 3)));
}

auto Lex(std::string_view text, std::vector<ExprError>& errors, size_t begin) -> std::vector<Token> {
  CHECK(text.size() <= MaxExprBytes, "{} bytes", text.size());
  return Lexer(text, errors, begin).Run();
}

}  // namespace shardc
