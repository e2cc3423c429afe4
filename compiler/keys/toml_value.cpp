#include "compiler/keys/toml_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "compiler/base/text/parse_whole.h"

namespace shardc {

auto QuoteToml(std::string_view text) -> std::string {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

auto WriteToml(int64_t value) -> std::string { return fmt::format("{}", value); }

/// Writes the shortest text that reads back to the same number, always as a real one: "1.0", "1e-05".
auto WriteToml(double value) -> std::string {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

auto WriteToml(bool value) -> std::string { return value ? "true" : "false"; }

auto WriteToml(const std::string& value) -> std::string { return QuoteToml(value); }

template <class T>
static auto WriteList(const std::vector<T>& values) -> std::string {
  std::string text = "[";
  for (const T& value : values) {
    text += (text.size() > 1 ? ", " : "") + WriteToml(value);
  }
  return text + "]";
}

auto WriteToml(const std::vector<std::string>& value) -> std::string { return WriteList(value); }
auto WriteToml(const std::vector<int64_t>& value) -> std::string { return WriteList(value); }
auto WriteToml(const std::vector<double>& value) -> std::string { return WriteList(value); }

auto IsPlainNumber(const std::string& text) -> bool {
  if (text.empty() || text.find_first_not_of("0123456789.e-") != std::string::npos || text.front() == '.' ||
      text.back() == '.' || (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9')) {
    return false;
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) && text == fmt::format("{}", value);
}

auto WriteToml(const Formula& value) -> std::string {
  return IsPlainNumber(value.text) ? value.text : QuoteToml(value.text);
}

auto WriteToml(const ByteSize& value) -> std::string { return value.text == "0" ? value.text : QuoteToml(value.text); }

auto WriteToml(const Condition& value) -> std::string {
  return value.text == "true" || value.text == "false" ? value.text : QuoteToml(value.text);
}

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  auto ReadWhole() -> std::optional<TomlValue> {
    TomlValue value;
    return Read(value, MostNested) && at_ == text_.size() ? std::optional(std::move(value)) : std::nullopt;
  }

 private:
  using Kind = TomlValue::Kind;

  /// Lists of tables with lists of texts.
  static constexpr int MostNested = 4;

  auto Take(std::string_view word) -> bool {
    const bool is_there = text_.substr(at_).starts_with(word);
    at_ += is_there ? word.size() : 0;
    return is_there;
  }
  auto Read(TomlValue& value, int may_nest) -> bool {
    if (may_nest == 0) {
      return false;
    }
    if (Take("\"")) {
      value.kind = Kind::Text;
      return ReadText(value.text);
    }
    if (Take("[")) {
      value.kind = Kind::List;
      return Take("]") || ReadItems(value, may_nest - 1);
    }
    if (Take("{ ")) {
      value.kind = Kind::Table;
      return ReadMembers(value, may_nest - 1);
    }
    return ReadWord(value);
  }
  /// Reads the rest of a text, after its first quote.
  auto ReadText(std::string& text) -> bool {
    while (at_ < text_.size()) {
      if (Take("\"")) {
        return true;
      }
      if (!Take("\\")) {
        text += text_[at_++];
      } else if (Take("\"") || Take("\\")) {
        text += text_[at_ - 1];
      } else if (!Take("u") || !ReadCode(text)) {
        return false;
      }
    }
    return false;
  }
  /// Reads the number of a control character.
  auto ReadCode(std::string& text) -> bool {
    constexpr size_t NumDigits = 4;
    const std::string_view digits = text_.substr(at_, NumDigits);
    unsigned code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    at_ += digits.size();
    text += static_cast<char>(code);
    return error == std::errc{} && digits.size() == NumDigits && end == digits.data() + NumDigits && code < 0x80;
  }
  auto ReadItems(TomlValue& list, int may_nest) -> bool {
    do {
      if (!Read(list.items.emplace_back(), may_nest)) {
        return false;
      }
    } while (Take(", "));
    return Take("]");
  }
  auto ReadMembers(TomlValue& table, int may_nest) -> bool {
    do {
      const size_t end = text_.find(" = ", at_);
      if (end == std::string_view::npos) {
        return false;
      }
      auto& [name, value] = table.members.emplace_back(std::string(text_.substr(at_, end - at_)), TomlValue{});
      at_ = end;
      if (!Take(" = ") || !Read(value, may_nest)) {
        return false;
      }
    } while (Take(", "));
    return Take(" }");
  }
  auto ReadWord(TomlValue& value) -> bool {
    const size_t end = std::min(text_.find_first_of(",]} ", at_), text_.size());
    value.text = text_.substr(at_, end - at_);
    at_ = end;
    value.kind = value.text == "true" || value.text == "false" ? Kind::Bool : Kind::Number;
    const auto number = ParseWhole<double>(value.text);
    return value.kind == Kind::Bool || (number && std::isfinite(*number));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

auto ReadToml(std::string_view text) -> std::optional<TomlValue> { return Reader(text).ReadWhole(); }

}  // namespace shardc
