// Values in TOML: of the effective recipe, of the lines `recipe` of a plan, and of the defaults in tables and
// reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/keys/key_types.h"

namespace shardc {

/// Returns `text` as a TOML string in double quotes.
auto QuoteToml(std::string_view text) -> std::string;

auto WriteToml(int64_t value) -> std::string;
/// Returns the shortest text that reads back to the same number, always as a real one: "1.0", "1e-05".
auto WriteToml(double value) -> std::string;
auto WriteToml(bool value) -> std::string;
auto WriteToml(const std::string& value) -> std::string;
auto WriteToml(const std::vector<std::string>& value) -> std::string;
auto WriteToml(const std::vector<int64_t>& value) -> std::string;
auto WriteToml(const std::vector<double>& value) -> std::string;
/// Writes plain numbers, true and false without quotes.
auto WriteToml(const Formula& value) -> std::string;
auto WriteToml(const ByteSize& value) -> std::string;
auto WriteToml(const Condition& value) -> std::string;
template <class E>
auto WriteToml(const OneOf<E>& value) -> std::string {
  return WriteToml(value.text());
}
template <class Form>
auto WriteToml(const FirstStartOf<Form>& value) -> std::string {
  if (!IsSet(value.from())) {
    return WriteToml(value.word);
  }
  std::string text = (IsSet(value.seed) ? "{ seed = " : "{ continue = ") + WriteToml(*value.from());
  text += IsSet(value.adapter) ? ", adapter = " + WriteToml(*value.adapter) : "";
  text += IsSet(value.reset) ? ", reset = " + WriteToml(*value.reset) : "";
  text += IsSet(value.missing) ? ", missing = " + WriteToml(*value.missing) : "";
  text += IsSet(value.unused) ? ", unused = " + WriteToml(*value.unused) : "";
  return text + " }";
}

/// Returns true if a text is a number that TOML and the expression language both read as the same one.
auto IsPlainNumber(const std::string& text) -> bool;

/// A value in TOML as WriteToml writes it.
struct TomlValue {
  enum class Kind : uint8_t { Text, Number, Bool, List, Table };

  Kind kind = Kind::Text;
  /// The text without quotes and escapes; of a number or a bool as it is spelled.
  std::string text;
  std::vector<TomlValue> items;
  std::vector<std::pair<std::string, TomlValue>> members;
};

/// Returns the value that the whole of a text is; nothing for a text that WriteToml does not write, such as a date.
auto ReadToml(std::string_view text) -> std::optional<TomlValue>;

}  // namespace shardc
