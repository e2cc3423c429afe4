#include "compiler/explain/json_lines.h"

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

static auto Append(const Json& json, size_t indent, std::string& text) -> void {
  const bool is_one_line =
      json.empty() || !json.is_structured() ||
      (json.is_array() && std::ranges::none_of(json, [](const Json& item) { return item.is_structured(); }));
  if (is_one_line) {
    text += Dumped(json);
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
