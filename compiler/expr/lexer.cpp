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
    {"if", TokenKind::If}, {"then", TokenKind::Then}, {"else", TokenKind::Else}, {"and", TokenKind::And},
    {"or", TokenKind::Or}, {"not", TokenKind::Not},   {"let", TokenKind::Let},   {"in", TokenKind::In},
};

/// Words of Python that expressions do not have, the message for each, and how much of the text it takes.
struct ForeignWord {
  std::string_view word;
  /// Taken as well if it follows: "." of `math.`, a quote of `f"..."`.
  std::string_view next;
  std::string_view fault;
};

constexpr ForeignWord ForeignWords[] = {
    {"math", ".", "functions and `pi` stand alone: write cos(x) for math.cos(x)"},
    {"np", ".", "functions and `pi` stand alone: write cos(x) for np.cos(x)"},
    {"numpy", ".", "functions and `pi` stand alone: write cos(x) for numpy.cos(x)"},
    {"torch", ".", "functions and `pi` stand alone: write cos(x) for torch.cos(x)"},
    {"f", "\"", "a text needs no `f`: what stands in its braces is an expression"},
    {"f", "'", "a text needs no `f`: what stands in its braces is an expression"},
    {"lambda", ":", "there is no `lambda`: the expression itself is the function; write what stands after the `:`"},
    {"return", "", "there is no `return`: the expression itself is the value"},
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
    {"=", TokenKind::Equal, "`=` is not an operator; write `==` for equality", "=="},
    {"!", TokenKind::Not, "`!` is not an operator; write `not` for the opposite", "not"},
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

  /// Adds an operator of another language, which stands for one of ours.
  auto PushForeign(TokenKind kind, size_t length, std::string message, std::string_view right) -> void {
    Report(length, "expr-syntax", std::move(message), right);
    Push(kind, length);
    tokens_.back().is_foreign = true;
  }

  /// Returns true if a value ends before the next token.
  auto IsAfterValue() const -> bool {
    const TokenKind last = tokens_.empty() ? TokenKind::Comma : tokens_.back().kind;
    return last == TokenKind::Number || last == TokenKind::Name || last == TokenKind::Close;
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
      Report(length, "expr-syntax", fmt::format("{} is not a number{}", Quoted(word), WithoutUnderscores(word)));
      number = 0;
    } else if (status == std::errc::result_out_of_range) {
      Report(length, "expr-domain", fmt::format("{} is beyond double precision, 4.9e-324 to 1.8e308", Quoted(word)));
      number = 0;
    }
    Push(TokenKind::Number, length, number);
  }

  /// Returns "; write 1000" for 1_000.
  static auto WithoutUnderscores(std::string_view word) -> std::string {
    std::string digits(word);
    const bool has_some = std::erase(digits, '_') > 0;
    double number = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool is_number = status == std::errc() && end == digits.data() + digits.size();
    return has_some && is_number ? fmt::format("; write {}", digits) : "";
  }

  auto TakeName(std::string_view rest) -> void {
    const auto end = std::find_if_not(rest.begin(), rest.end(), IsNamePart);
    const std::string_view word(rest.data(), static_cast<size_t>(end - rest.begin()));
    if (word == "is" && IsAfterValue()) {
      TakeIs(rest);
      return;
    }
    if (SkipForeignWord(word, rest.substr(word.size()))) {
      return;
    }
    const auto keyword = std::find_if(std::begin(Keywords), std::end(Keywords),
                                      [&](const Spelling& spelling) { return spelling.text == word; });
    Push(keyword == std::end(Keywords) ? TokenKind::Name : keyword->kind, word.size());
  }

  /// Takes `is`, or `is not`.
  auto TakeIs(std::string_view rest) -> void {
    const size_t word = std::min(rest.find_first_not_of(" \t\r\n", 2), rest.size());
    if (rest.substr(word).starts_with("not") && IsSpaceOrEnd(rest, word + 3)) {
      PushForeign(TokenKind::NotEqual, word + 3, "`is not` is not an operator; write `!=`", "!=");
    } else {
      PushForeign(TokenKind::Equal, 2, "`is` is not an operator; write `==` for equality", "==");
    }
  }

  /// Reports a word of Python and what belongs to it, and goes on after it.
  auto SkipForeignWord(std::string_view word, std::string_view after) -> bool {
    for (const ForeignWord& foreign : ForeignWords) {
      const bool has_names = foreign.next == ":";
      const size_t next = has_names ? after.find(':') : 0;
      if (foreign.word != word || next == std::string_view::npos || !after.substr(next).starts_with(foreign.next)) {
        continue;
      }
      const bool is_text = foreign.word == "f";
      Report(word.size(), "expr-syntax", std::string(foreign.fault));
      at_ += word.size() + next + (is_text ? 0 : foreign.next.size());
      return true;
    }
    return false;
  }

  /// Returns true if `name(a, name` comes before a `=`, which then gives an argument by its name.
  auto IsAfterArgumentName() const -> bool {
    const size_t n = tokens_.size();
    const auto is_open = [](const Token& token) { return token.kind == TokenKind::Open; };
    const auto is_close = [](const Token& token) { return token.kind == TokenKind::Close; };
    const bool is_in_parentheses = std::count_if(tokens_.begin(), tokens_.end(), is_open) >
                                   std::count_if(tokens_.begin(), tokens_.end(), is_close);
    return is_in_parentheses && n >= 2 && tokens_[n - 1].kind == TokenKind::Name &&
           (tokens_[n - 2].kind == TokenKind::Comma ||
            (n >= 3 && tokens_[n - 2].kind == TokenKind::Open && tokens_[n - 3].kind == TokenKind::Name));
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
    if (symbol != std::end(Symbols) && symbol->text == "=" && (IsBehindLet() || IsAfterArgumentName())) {
      Push(TokenKind::Assign, 1);
      return;
    }
    if (symbol != std::end(Symbols) && !symbol->fault.empty()) {
      PushForeign(symbol->kind, symbol->text.size(), std::string(symbol->fault), symbol->right);
      return;
    }
    if (SkipForeignSymbol(rest)) {
      return;
    }
    if (symbol != std::end(Symbols)) {
      Push(symbol->kind, symbol->text.size());
      return;
    }
    // Bytes of other scripts are one fault, not one each.
    const auto end = std::find_if(rest.begin(), rest.end(), IsAscii);
    const size_t length = std::max<size_t>(1, static_cast<size_t>(end - rest.begin()));
    const bool is_choice = rest.front() == '?' && rest.find(':') != std::string_view::npos;
    // The `:` of a choice is told of with its `?`.
    if (rest.front() != ':' || !std::exchange(has_choice_, false)) {
      Report(length, "expr-syntax",
             fmt::format("{} is not part of the language{}", Quoted(rest.substr(0, length)),
                         is_choice ? "; write: if condition then a else b" : ""));
    }
    has_choice_ = has_choice_ || is_choice;
    Push(TokenKind::Broken, length);
  }

  /// Reports a percentage, a `;` or a list, and goes on after it.
  auto SkipForeignSymbol(std::string_view rest) -> bool {
    const size_t after = std::min(rest.find_first_not_of(" \t\r\n", 1), rest.size());
    const bool is_last = after == rest.size();
    const bool ends_value = is_last || rest[after] == ')' || rest[after] == ',';
    if (rest.front() == '%' && ends_value && !tokens_.empty() && tokens_.back().kind == TokenKind::Number) {
      const Token& number = tokens_.back();
      const auto begin = static_cast<size_t>(number.begin);
      Report(1, "expr-syntax",
             fmt::format("`%` is the remainder of a division; write {:.15g} for {}%", number.number / 100,
                         text_.substr(begin, static_cast<size_t>(number.end) - begin)));
      ++at_;
      return true;
    }
    if (rest.front() == ';') {
      Report(1, "expr-syntax",
             fmt::format("`;` is not part of the language; {}",
                         is_last ? "leave it out: an expression ends with its text"
                                 : "an expression is one value: a name for another is `let a = 1 in a + 1`"));
      // At the end nothing else is wrong.
      if (is_last) {
        ++at_;
      } else {
        Push(TokenKind::Broken, 1);
      }
      return true;
    }
    if (rest.front() == '[') {
      const size_t length = std::min(rest.find(']'), rest.size() - 1) + 1;
      Report(length, "expr-syntax",
             fmt::format(
                 "{} is a list, and the language has none; a value is one number, and `if` chooses between several",
                 Quoted(rest.substr(0, length))));
      Push(TokenKind::Broken, length);
      return true;
    }
    return false;
  }

  std::string_view text_;
  std::vector<ExprError>& errors_;
  std::vector<Token> tokens_;
  size_t at_;
  /// After a `?`, until its `:`.
  bool has_choice_ = false;
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
