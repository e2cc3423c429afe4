#include "compiler/mesh/rank_expr.h"

#include <algorithm>
#include <charconv>

namespace shardc {

/// Sums wrap like unsigned ones: a hostile plan must not be undefined behaviour before the verifier, which bounds every
/// term, has seen it.
static auto AddProduct(int64_t sum, int64_t a, int64_t b) -> int64_t {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

auto RankExpr::Evaluate(const RankPoint& point) const -> int64_t {
  int64_t value = AddProduct(AddProduct(base, repeat, point.repeat), step, point.step);
  for (size_t i = 0; i < NumAxes; ++i) {
    value = AddProduct(value, axis[i], point.coordinates[i]);
  }
  if (clamp) {
    value = std::clamp(value, clamp->begin, clamp->end);
  }
  return equals ? static_cast<int64_t>(value == *equals) : value;
}

auto RankExpr::Plus(int64_t delta) const -> RankExpr {
  CHECK(!clamp && !equals, "cannot shift {}", ToText(*this));
  RankExpr shifted = *this;
  shifted.base = AddProduct(base, delta, 1);
  return shifted;
}

static auto Term(std::string& text, int64_t factor, std::string_view name) -> void {
  if (factor != 0) {
    text += fmt::format("{}{}*{}", text.empty() || factor < 0 ? "" : "+", factor, name);
  }
}

auto ToText(const RankExpr& expr) -> std::string {
  std::string text = expr.base != 0 ? std::to_string(expr.base) : "";
  for (int i = 0; i < NumAxes; ++i) {
    Term(text, expr.axis[static_cast<size_t>(i)], ToText(static_cast<Axis>(i)));
  }
  Term(text, expr.repeat, "repeat");
  Term(text, expr.step, "step");
  if (text.empty()) {
    text += '0';
  }
  if (expr.clamp) {
    text = fmt::format("clamp({},{},{})", text, expr.clamp->begin, expr.clamp->end);
  }
  if (expr.equals) {
    text = fmt::format("equal({},{})", text, *expr.equals);
  }
  return text;
}

/// Reads an integer off the front of `text`.
static auto TakeInteger(std::string_view& text) -> std::optional<int64_t> {
  int64_t value = 0;
  if (text.starts_with("+-")) {
    return std::nullopt;
  }
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, status] = std::from_chars(begin, text.data() + text.size(), value);
  if (status != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

static auto TakeAffine(std::string_view& text, RankExpr& expr) -> bool {
  bool any = false;
  const auto add = [](int64_t& to, int64_t term) { return !__builtin_add_overflow(to, term, &to); };
  while (!text.empty() && text.front() != ',' && text.front() != ')') {
    if (any && text.front() != '+' && text.front() != '-') {
      return false;
    }
    const auto factor = TakeInteger(text);
    if (!factor) {
      return false;
    }
    any = true;
    if (!text.starts_with('*')) {
      if (!add(expr.base, *factor)) {
        return false;
      }
      continue;
    }
    text.remove_prefix(1);
    const std::string_view name = text.substr(0, text.find_first_of("+-,)"));
    text.remove_prefix(name.size());
    const auto axis = FromText<Axis>(name);
    int64_t* const coefficient = axis               ? &expr.axis[static_cast<size_t>(*axis)]
                                 : name == "repeat" ? &expr.repeat
                                 : name == "step"   ? &expr.step
                                                    : nullptr;
    if (coefficient == nullptr || !add(*coefficient, *factor)) {
      return false;
    }
  }
  return any;
}

auto RankExprFromText(std::string_view text) -> ErrorOr<RankExpr> {
  const Error malformed = Fail(ExitCode::Usage, "`{}` is not a rank expression", text);
  RankExpr expr;
  const bool has_equal = text.starts_with("equal(");
  text.remove_prefix(has_equal ? 6 : 0);
  const bool has_clamp = text.starts_with("clamp(");
  text.remove_prefix(has_clamp ? 6 : 0);
  if (!TakeAffine(text, expr)) {
    return malformed;
  }
  const auto argument = [&](char end) -> std::optional<int64_t> {
    if (!text.starts_with(',')) {
      return std::nullopt;
    }
    text.remove_prefix(1);
    const auto number = TakeInteger(text);
    if (!number || !text.starts_with(end)) {
      return std::nullopt;
    }
    text.remove_prefix(end == ')' ? 1 : 0);
    return number;
  };
  if (has_clamp) {
    const auto low = argument(',');
    const auto high = low ? argument(')') : std::nullopt;
    if (!high || *high < *low) {
      return malformed;
    }
    expr.clamp = Interval{*low, *high};
  }
  if (has_equal) {
    expr.equals = argument(')');
    if (!expr.equals) {
      return malformed;
    }
  }
  if (!text.empty()) {
    return malformed;
  }
  return expr;
}

}  // namespace shardc
