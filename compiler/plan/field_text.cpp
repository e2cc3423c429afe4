#include "compiler/plan/field_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shardc {

static auto IsLetterOrDigit(char c) -> bool {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static auto IsBareCharacter(char c) -> bool {
  return IsLetterOrDigit(c) || std::string_view("_.-+/*").find(c) != std::string_view::npos;
}

auto Quote(std::string_view text) -> std::string {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\n': quoted += "\\n"; break;
      case '\t': quoted += "\\t"; break;
      case '\r': quoted += "\\r"; break;
      default:
        if (c >= ' ' && c <= '~') {
          quoted += c;
        } else {
          quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
  }
  return quoted + '"';
}

auto QuoteIfNeeded(std::string_view text) -> std::string {
  const bool bare = !text.empty() && (IsLetterOrDigit(text.front()) || text.front() == '_') &&
                    std::all_of(text.begin(), text.end(), IsBareCharacter);
  return bare ? std::string(text) : Quote(text);
}

auto FieldText(const Plan&, bool value) -> std::string { return value ? "true" : "false"; }
auto FieldText(const Plan&, int32_t value) -> std::string { return std::to_string(value); }
auto FieldText(const Plan&, int64_t value) -> std::string { return std::to_string(value); }
auto FieldText(const Plan&, uint64_t value) -> std::string { return std::to_string(value); }
auto FieldText(const Plan&, double value) -> std::string { return fmt::format("{}", value); }
auto FieldText(const Plan&, const std::string& value) -> std::string { return QuoteIfNeeded(value); }
auto FieldText(const Plan&, Bytes value) -> std::string { return std::to_string(value.value); }
auto FieldText(const Plan&, AxisSet value) -> std::string { return ToText(value); }
auto FieldText(const Plan&, const RankExpr& value) -> std::string { return ToText(value); }
auto FieldText(const Plan&, ExitCode value) -> std::string { return std::to_string(static_cast<int>(value)); }

auto FieldText(const Plan& plan, const std::vector<EventId>& value) -> std::string {
  std::string text;
  for (const EventId event : value) {
    text += (text.empty() ? "" : ",") + FieldText(plan, event);
  }
  return text;
}

/// The first scalar of this name, or an invalid id.
static auto FindScalar(const Plan& plan, std::string_view name) -> ScalarId {
  for (int32_t i = 0; i < plan.scalars.size(); ++i) {
    if (plan.scalars[ScalarId{i}].name == name) {
      return ScalarId{i};
    }
  }
  return {};
}

/// A name that cannot be taken for a number, and needs no quotes.
static auto IsScalarName(std::string_view name) -> bool {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLetterOrDigit(c) || c == '_'; });
}

auto FieldText(const Plan& plan, ScalarId value) -> std::string {
  if (plan.scalars.Has(value)) {
    const std::string& name = plan.scalars[value].name;
    if (IsScalarName(name) && FindScalar(plan, name) == value) {
      return "@" + name;
    }
  }
  return "@" + std::to_string(value.index);
}

auto FieldText(const Plan& plan, const Predicate& value) -> std::string {
  return (value.negated ? "!" : "") + FieldText(plan, value.scalar);
}

auto FieldText(const Plan& plan, ValueRole value) -> std::string {
  switch (value.kind()) {
    case RoleKind::Other: return "other";
    case RoleKind::Parameter: return fmt::format("parameter({})", FieldText(plan, value.parameter()));
    case RoleKind::Gradient:
      return value.gradient_of().valid() ? fmt::format("gradient({})", FieldText(plan, value.gradient_of()))
                                         : "gradient";
    case RoleKind::Vector: return fmt::format("vector({})", FieldText(plan, value.sub_vector()));
  }
  CHECK(false, "role {}", static_cast<int>(value.kind()));
}

template <class Number>
static auto ReadNumber(std::string_view text, Number& value) -> bool {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end == text.data() + text.size();
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

auto FieldParser::Read(std::string_view text, std::vector<EventId>& value) const -> std::string {
  value.clear();
  while (true) {
    const size_t comma = text.find(',');
    EventId event;
    if (std::string expected = Read(text.substr(0, comma), event); !expected.empty()) {
      return expected;
    }
    value.push_back(event);
    if (comma == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(comma + 1);
  }
}

auto FieldParser::Read(std::string_view text, ScalarId& value) const -> std::string {
  if (text.starts_with('@')) {
    int32_t index = -1;
    if (IsScalarName(text.substr(1))) {
      value = FindScalar(plan_, text.substr(1));
      if (value.valid()) {
        return {};
      }
    } else if (ReadNumber(text.substr(1), index) && index >= 0) {
      value = ScalarId{index};
      return {};
    }
  }
  return "a scalar declared above, such as @lr or @0";
}

auto FieldParser::Read(std::string_view text, Predicate& value) const -> std::string {
  value.negated = text.starts_with('!');
  return Read(text.substr(value.negated ? 1 : 0), value.scalar);
}

auto FieldParser::Read(std::string_view text, ValueRole& value) const -> std::string {
  const size_t open = text.find('(');
  const bool has_id = open != std::string_view::npos && text.ends_with(')');
  const std::string_view word = has_id ? text.substr(0, open) : text;
  const std::string_view id = has_id ? text.substr(open + 1, text.size() - open - 2) : std::string_view{};
  ParameterId parameter;
  SubVectorId sub_vector;
  if (word == "vector" && Read(id, sub_vector).empty()) {
    value = ValueRole::Of(sub_vector);
  } else if (word == "parameter" && Read(id, parameter).empty()) {
    value = ValueRole::Of(parameter);
  } else if (word == "gradient" && (!has_id || Read(id, parameter).empty())) {
    value = ValueRole::GradientOf(parameter);
  } else {
    return "a role: parameter(p0), gradient(p0), gradient or vector(v0)";
  }
  return {};
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
