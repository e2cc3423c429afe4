#include "compiler/recipe/type_help.h"

#include "compiler/keys/toml_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

#include "compiler/recipe/key_rows.h"

namespace shardc {

namespace {

/// A number, and what stands after it.
struct NumberInText {
  double number = 0;
  std::string unit;
};

}  // namespace

static auto FindNumber(std::string_view text) -> std::optional<NumberInText> {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits), [](char c) { return c != '_' && c != ' '; });
  NumberInText found;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), found.number);
  if (parsed.ec != std::errc() || !std::isfinite(found.number)) {
    return std::nullopt;
  }
  found.unit = digits.substr(static_cast<size_t>(parsed.ptr - digits.data()));
  return found;
}

static auto MinutesIn(std::string_view unit) -> std::optional<double> {
  struct Row {
    std::string_view unit;
    double minutes;
  };
  constexpr std::array rows = {
      Row{"s", 1.0 / 60}, Row{"sec", 1.0 / 60}, Row{"seconds", 1.0 / 60}, Row{"m", 1},           Row{"min", 1},
      Row{"mins", 1},     Row{"minute", 1},     Row{"minutes", 1},        Row{"h", 60},          Row{"hr", 60},
      Row{"hour", 60},    Row{"hours", 60},     Row{"d", 24.0 * 60},      Row{"day", 24.0 * 60}, Row{"days", 24.0 * 60},
  };
  const auto* const row = std::ranges::find(rows, unit, &Row::unit);
  return row == rows.end() ? std::nullopt : std::optional(row->minutes);
}

/// As TOML has it for a key that takes whole numbers, or any; empty if the key does not take it.
static auto NumberFor(const KeyInfo& key, double number) -> std::string {
  const auto range = RangeOf(key.path());
  if (range && (number < range->low || number > range->high)) {
    return "";
  }
  const bool is_whole = std::abs(number) < 0x1p53 && std::trunc(number) == number;
  if (is_whole) {
    return fmt::format("{}", static_cast<int64_t>(number));
  }
  return key.type == "Int" ? "" : fmt::format("{}", number);
}

auto BoolMeant(std::string text) -> std::string_view {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (text == word) {
      return "true";
    }
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (text == word) {
      return "false";
    }
  }
  return "";
}

/// Returns true for what people write to do without a key.
static auto IsOff(const TomlNode& node) -> bool {
  return node.kind == TomlNode::Kind::Bool ||
         (node.kind == TomlNode::Kind::Text &&
          (node.text.empty() || node.text == "none" || BoolMeant(node.text) == "false"));
}

/// The value as it should stand there; empty if none is known.
static auto MeantValue(const KeyInfo& key, const TomlNode& node) -> std::string {
  const bool is_text = node.kind == TomlNode::Kind::Text;
  if (key.type == "Bool" && (is_text || node.kind == TomlNode::Kind::Int)) {
    return std::string(BoolMeant(is_text ? node.text : std::to_string(node.integer)));
  }
  if (key.type == "Texts" && is_text && !IsOff(node)) {
    return fmt::format("[{}]", QuoteToml(node.text));
  }
  if (key.type != "Int" && key.type != "Real") {
    return "";
  }
  if (node.kind == TomlNode::Kind::Real) {
    return NumberFor(key, node.real);
  }
  const auto found = is_text ? FindNumber(node.text) : std::nullopt;
  if (!found || found->unit.empty()) {
    return found ? NumberFor(key, found->number) : "";
  }
  const auto minutes = key.name.ends_with("minutes") ? MinutesIn(found->unit) : std::nullopt;
  return minutes ? NumberFor(key, found->number * *minutes) : "";
}

auto TypeHelp(const KeyInfo& key, const TomlNode& node) -> std::string {
  const std::string meant = MeantValue(key, node);
  if (!meant.empty()) {
    return fmt::format("write {} = {}", key.name, meant);
  }
  const bool is_list_of_numbers = key.type == "Reals" || key.type == "Ints";
  if (!IsOff(node) && !is_list_of_numbers) {
    return "";
  }
  if (key.type == "Texts" && !key.is_required()) {
    return fmt::format("to do without it, leave it out, or type --unset {}", key.path());
  }
  // Its description says how to switch it off, and what a list has.
  return key.type == "Int" || key.type == "Real" || is_list_of_numbers ? fmt::format("{}: {}", key.name, key.doc) : "";
}

}  // namespace shardc
