#include "compiler/plan/field_text.h"

#include <cmath>

#include "compiler/base/text/parse_whole.h"

namespace shardc {

auto FieldText(bool value) -> std::string { return value ? "true" : "false"; }
auto FieldText(int32_t value) -> std::string { return std::to_string(value); }
auto FieldText(int64_t value) -> std::string { return std::to_string(value); }
auto FieldText(uint64_t value) -> std::string { return std::to_string(value); }
auto FieldText(double value) -> std::string { return fmt::format("{}", value); }
auto FieldText(const std::string& value) -> std::string { return QuoteIfNeeded(value); }
auto FieldText(const std::vector<int64_t>& value) -> std::string { return fmt::format("{}", fmt::join(value, ",")); }
auto FieldText(Bytes value) -> std::string { return std::to_string(value.value); }
auto FieldText(AxisSet value) -> std::string { return ToText(value); }
auto FieldText(const RankExpr& value) -> std::string { return ToText(value); }
auto FieldText(ExitCode value) -> std::string { return std::to_string(static_cast<int>(value)); }

auto AppendField(const PlanNames& names, const std::vector<EventId>& value, std::string& out) -> void {
  for (size_t i = 0; i < value.size(); ++i) {
    out += i == 0 ? "" : ",";
    out += names.Text(value[i]);
  }
}

auto RoleText(const PlanNames& names, ValueRole value) -> std::string {
  switch (value.kind()) {
    case RoleKind::Other: return "other";
    case RoleKind::Parameter: return fmt::format("parameter({})", names.Text(value.parameter()));
    case RoleKind::Gradient:
      return value.gradient_of() != ParameterId{} ? fmt::format("gradient({})", names.Text(value.gradient_of()))
                                                  : "gradient";
    case RoleKind::Vector: return fmt::format("vector({})", names.Text(value.sub_vector()));
  }
  CHECK(false, "role {}", static_cast<int>(value.kind()));
}

auto AppendField(const PlanNames& names, const ValueRole& value, std::string& out) -> void {
  const std::string text = RoleText(names, value);
  const size_t open = text.find('(');
  const bool is_bare =
      open == std::string::npos || IsBare(std::string_view(text).substr(open + 1, text.size() - open - 2));
  out += is_bare ? text : Quote(text);
}

template <class Number>
static auto ReadNumber(std::string_view text, Number& value) -> bool {
  const auto number = ParseWhole<Number>(text);
  value = number.value_or(value);
  return number.has_value();
}

auto FieldParser::Read(std::string_view text, bool& value) const -> std::string {
  value = text == "true";
  return value || text == "false" ? "" : "true or false";
}

auto FieldParser::Read(std::string_view text, int32_t& value) const -> std::string {
  return ReadNumber(text, value) ? "" : "an integer of 32 bits";
}

auto FieldParser::Read(std::string_view text, int64_t& value) const -> std::string {
  return ReadNumber(text, value) ? "" : "an integer of 64 bits";
}

auto FieldParser::Read(std::string_view text, uint64_t& value) const -> std::string {
  return ReadNumber(text, value) ? "" : "an integer of 64 bits, not negative";
}

auto FieldParser::Read(std::string_view text, double& value) const -> std::string {
  return ReadNumber(text, value) && std::isfinite(value) ? "" : "a finite number";
}

auto FieldParser::Read(std::string_view text, std::string& value) const -> std::string {
  value = text;
  return {};
}

auto FieldParser::Read(std::string_view text, Bytes& value) const -> std::string { return Read(text, value.value); }

auto FieldParser::Read(std::string_view text, AxisSet& value) const -> std::string {
  const auto axes = AxisSetFromText(text);
  if (!axes) {
    return "axes such as dp or dp+tp";
  }
  value = *axes;
  return {};
}

auto FieldParser::Read(std::string_view text, RankExpr& value) const -> std::string {
  // Bounded terms and digits: so no sum of them overflows.
  constexpr size_t MaxLength = 256;
  constexpr int MaxDigits = 16;
  int digits = 0;
  bool bounded = text.size() <= MaxLength;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    bounded = bounded && digits <= MaxDigits;
  }
  if (bounded) {
    if (const auto expr = RankExprFromText(text)) {
      value = *expr;
      return {};
    }
  }
  return "a rank expression such as 64+128*dp+3*repeat, numbers of 16 digits at most";
}

auto FieldParser::Read(std::string_view text, ExitCode& value) const -> std::string {
  int32_t code = 0;
  if (!ReadNumber(text, code) || code < 0 || code > 125) {
    return "an exit code from 0 to 125";
  }
  value = static_cast<ExitCode>(code);
  return {};
}

auto FieldParser::Read(std::string_view text, Predicate& value) const -> std::string {
  value.negated = text.starts_with('!');
  return Read(text.substr(value.negated ? 1 : 0), value.scalar);
}

auto FieldParser::Read(std::string_view text, ValueRole& value) const -> std::string {
  const size_t open = text.find('(');
  const bool has_name = open != std::string_view::npos && text.ends_with(')');
  const std::string_view word = has_name ? text.substr(0, open) : text;
  const std::string_view name = has_name ? text.substr(open + 1, text.size() - open - 2) : std::string_view{};
  ParameterId parameter;
  SubVectorId sub_vector;
  std::string expected;
  if (word == "gradient" && !has_name) {
    value = ValueRole::GradientOf({});
    return {};
  }
  if (has_name && word == "vector") {
    expected = Read(name, sub_vector);
    value = ValueRole::Of(sub_vector);
  } else if (has_name && (word == "parameter" || word == "gradient")) {
    expected = Read(name, parameter);
    value = word == "parameter" ? ValueRole::Of(parameter) : ValueRole::GradientOf(parameter);
  } else {
    return "a role, such as parameter(NAME), gradient(NAME), gradient or vector(NAME),";
  }
  return expected.empty() ? "" : "the role of " + expected;
}

auto ReadDims(std::string_view text, Dims& dims) -> bool {
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) {
    return false;
  }
  text = text.substr(1, text.size() - 2);
  dims.clear();
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    int64_t size = 0;
    if (dims.size() == Dims::max_size() || !ReadNumber(text.substr(0, comma), size)) {
      return false;
    }
    dims.push_back(size);
    if (comma == std::string_view::npos) {
      return true;
    }
    text.remove_prefix(comma + 2);
    if (text.empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace shardc
