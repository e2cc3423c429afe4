#include "compiler/expr/layer_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/lexer.h"

namespace shardc {

namespace {

/// Twice its product with a number of blocks is far below what 64 bits can hold.
constexpr size_t MaxDigits = 9;

struct Fraction {
  int64_t numerator = 0;
  int64_t denominator = 1;
};

auto IsDigits(std::string_view text) -> bool { return text.find_first_not_of("0123456789") == std::string_view::npos; }

/// Returns the number of at most MaxDigits digits; 0 without digits.
auto WholeNumber(std::string_view digits) -> int64_t {
  int64_t number = 0;
  for (const char digit : digits) {
    number = 10 * number + (digit - '0');
  }
  return number;
}

/// A text by its tokens: an optional sign, then WHOLE, WHOLE.DIGITS or WHOLE / WHOLE.
class FractionReader {
 public:
  explicit FractionReader(std::string_view text) : text_(text) {
    std::vector<ExprError> faults;
    if (text.size() <= MaxExprBytes) {
      tokens_ = Lex(text, faults);
    }
    is_negative_ = !tokens_.empty() && tokens_.front().kind == TokenKind::Minus;
    if (is_negative_) {
      tokens_.erase(tokens_.begin());
    }
    is_fraction_ = faults.empty() && HasForm();
  }

  auto is_fraction() const -> bool { return is_fraction_; }

  /// Requires: is_fraction.
  auto Read() const -> ExprResult<Fraction> {
    std::string_view top = TextOf(tokens_[0]);
    std::string tenths;
    Fraction fraction;
    if (IsQuotient()) {
      const std::string_view bottom = TextOf(tokens_[2]);
      if (bottom.size() > MaxDigits) {
        return Fault(tokens_[2], "block-fraction", TooLong(bottom));
      }
      fraction.denominator = WholeNumber(bottom);
      if (fraction.denominator == 0) {
        return Fault(tokens_[1], "expr-domain", fmt::format("division by zero: {} is 0", Quoted(bottom)));
      }
    } else if (const size_t point = top.find('.'); point != std::string_view::npos) {
      tenths = std::string(top.substr(0, point)) + std::string(top.substr(point + 1));
      for (size_t i = point + 1; i < top.size() && tenths.size() <= MaxDigits; ++i) {
        fraction.denominator *= 10;
      }
    }
    const std::string_view digits = tenths.empty() ? top : tenths;
    if (digits.size() > MaxDigits) {
      return Fault(tokens_[0], "block-fraction", TooLong(top));
    }
    fraction.numerator = WholeNumber(digits);
    if (fraction.numerator > fraction.denominator || (is_negative_ && fraction.numerator > 0)) {
      return Fault(Whole(), "block-fraction",
                   fmt::format("{} is {}; a fraction of the blocks is from 0 to 1",
                               Quoted(text_.substr(static_cast<size_t>(Whole().begin),
                                                   static_cast<size_t>(Whole().end - Whole().begin))),
                               is_negative_ ? "less than 0" : "more than 1"));
    }
    return {.value = fraction, .errors = {}};
  }

 private:
  auto TextOf(const Token& token) const -> std::string_view {
    return text_.substr(static_cast<size_t>(token.begin), static_cast<size_t>(token.end - token.begin));
  }

  auto IsQuotient() const -> bool { return tokens_.size() == 4; }

  auto HasForm() const -> bool {
    if (tokens_.size() == 4) {
      return tokens_[0].kind == TokenKind::Number && tokens_[1].kind == TokenKind::Divide &&
             tokens_[2].kind == TokenKind::Number && IsDigits(TextOf(tokens_[0])) && IsDigits(TextOf(tokens_[2]));
    }
    if (tokens_.size() != 2 || tokens_[0].kind != TokenKind::Number) {
      return false;
    }
    std::string number(TextOf(tokens_[0]));
    std::erase(number, '.');
    return IsDigits(number);
  }

  /// Returns the text from the sign to the last digit.
  auto Whole() const -> Token {
    const size_t first = text_.find_first_not_of(" \t\r\n");
    return {.kind = TokenKind::Number, .begin = static_cast<int>(first), .end = tokens_[tokens_.size() - 2].end};
  }

  static auto TooLong(std::string_view number) -> std::string {
    return fmt::format("{} has more than {} digits", Quoted(number), MaxDigits);
  }

  static auto Fault(const Token& place, std::string_view name, std::string message) -> ExprResult<Fraction> {
    return {.value = {}, .errors = {ErrorAt(place.begin, place.end, name, std::move(message))}};
  }

  std::string_view text_;
  /// After the sign; the last is End.
  std::vector<Token> tokens_;
  bool is_negative_ = false;
  bool is_fraction_ = false;
};

}  // namespace

auto LayersWhere(const Expr& predicate, int64_t layers, int64_t hidden) -> ExprResult<std::vector<bool>> {
  ExprResult<std::vector<bool>> chosen;
  ExprVariables variables{
      {"layer", 0.0}, {"layers", static_cast<double>(layers)}, {"hidden", static_cast<double>(hidden)}};
  double& layer_variable = variables.at("layer");
  for (int64_t layer = 0; layer < layers; ++layer) {
    layer_variable = static_cast<double>(layer);
    ExprResult<bool> holds = EvaluateBool(predicate, variables);
    for (ExprError& error : holds.errors) {
      error.message += fmt::format(" at layer {}", layer);
    }
    if (!holds.ok()) {
      return {.value = {}, .errors = std::move(holds.errors)};
    }
    chosen.value.push_back(holds.value);
  }
  return chosen;
}

auto ChooseLayers(std::string_view text, int64_t layers, int64_t hidden) -> ExprResult<std::vector<bool>> {
  const FractionReader reader(text);
  if (!reader.is_fraction()) {
    const ExprResult<Expr> predicate = ParseExpr(text, ExprKind::Predicate);
    return predicate.ok() ? LayersWhere(predicate.value, layers, hidden)
                          : ExprResult<std::vector<bool>>{.value = {}, .errors = predicate.errors};
  }
  const ExprResult<Fraction> fraction = reader.Read();
  if (!fraction.ok()) {
    return {.value = {}, .errors = fraction.errors};
  }
  const int64_t numerator = fraction.value.numerator;
  const int64_t denominator = fraction.value.denominator;
  ExprResult<std::vector<bool>> chosen;
  // floor(k p + 1/2), over one denominator.
  const auto rounded = [&](int64_t k) { return (2 * k * numerator + denominator) / (2 * denominator); };
  for (int64_t k = 1; k <= layers; ++k) {
    chosen.value.push_back(rounded(k) > rounded(k - 1));
  }
  return chosen;
}

}  // namespace shardc
