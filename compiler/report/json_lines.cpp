#include "compiler/report/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardc {

using Json = nlohmann::ordered_json;

static auto Dumped(const Json& value) -> std::string {
  const std::string plain = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const char c : plain) {
    text += c == '<' ? "\\u003c" : std::string(1, c);
  }
  return text;
}

/// Characters of an object that is one line, at most.
constexpr size_t ShortLine = 160;

static auto Append(const Json& json, size_t indent, std::string& text) -> void {
  const bool is_flat =
      !json.is_structured() || std::ranges::none_of(json, [](const Json& item) { return item.is_structured(); });
  if (const std::string line = is_flat ? Dumped(json) : "";
      is_flat && (!json.is_object() || line.size() <= ShortLine)) {
    text += line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  text += json.is_object() ? "{\n" : "[\n";
  size_t left = json.size();
  for (const auto& [key, value] : json.items()) {
    text += margin;
    if (json.is_object()) {
      text += Dumped(key) + ": ";
    }
    Append(value, indent + 2, text);
    text += --left > 0 ? ",\n" : "\n";
  }
  text += std::string(indent, ' ') + (json.is_object() ? "}" : "]");
}

auto JsonLines(const Json& json) -> std::string {
  std::string text;
  Append(json, 0, text);
  return text + "\n";
}

}  // namespace shardc
