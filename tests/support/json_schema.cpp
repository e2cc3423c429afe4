#include "tests/support/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace shardc {

static auto HasType(const nlohmann::json& value, const std::string& type) -> bool {
  return type == "integer"   ? value.is_number_integer()
         : type == "number"  ? value.is_number()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "array"   ? value.is_array()
                             : type == "object" && value.is_object();
}

/// What the schema says under a keyword, or `other`.
static auto RuleOf(const nlohmann::json& schema, const char* keyword, const nlohmann::json& other)
    -> const nlohmann::json& {
  const auto found = schema.find(keyword);
  return found == schema.end() ? other : *found;
}

static auto FaultOfMembers(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root,
                           const std::string& place) -> std::string {
  static const nlohmann::json nothing = nlohmann::json::object();
  static const nlohmann::json anything = true;
  for (const nlohmann::json& name : RuleOf(schema, "required", nothing)) {
    if (!value.contains(name)) {
      return fmt::format("{} lacks {}", place, name.get<std::string>());
    }
  }
  const nlohmann::json& properties = RuleOf(schema, "properties", nothing);
  const nlohmann::json& others = RuleOf(schema, "additionalProperties", anything);
  for (const auto& [name, member] : value.items()) {
    const nlohmann::json& own = properties.contains(name) ? properties[name] : others;
    if (own == false) {
      return fmt::format("{} has no member {}", place, name);
    }
    if (own != true) {
      if (std::string fault = FaultOf(member, own, root, place + "/" + name); !fault.empty()) {
        return fault;
      }
    }
  }
  return "";
}

auto FaultOf(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root,
             const std::string& place) -> std::string {
  static const std::set<std::string> known{
      "$schema",  "title",      "definitions",          "$ref", "oneOf", "const", "enum", "type",
      "required", "properties", "additionalProperties", "items"};
  for (const auto& [keyword, rule] : schema.items()) {
    if (!known.contains(keyword)) {
      return fmt::format("the schema of {} has the keyword {}", place, keyword);
    }
  }
  if (schema.contains("$ref")) {
    return FaultOf(value, root.at(nlohmann::json::json_pointer(schema["$ref"].get<std::string>().substr(1))), root,
                   place);
  }
  if (schema.contains("oneOf")) {
    const auto fits = std::count_if(schema["oneOf"].begin(), schema["oneOf"].end(), [&](const nlohmann::json& one) {
      return FaultOf(value, one, root, place).empty();
    });
    return fits == 1 ? "" : fmt::format("{} fits {}", place, fits == 0 ? "none" : "several");
  }
  if (schema.contains("const") && value != schema["const"]) {
    return fmt::format("{} is not {}", place, schema["const"].dump());
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return fmt::format("{} is none of the words", place);
  }
  if (schema.contains("type") && !HasType(value, schema["type"].get<std::string>())) {
    return fmt::format("{} is no {}", place, schema["type"].get<std::string>());
  }
  for (size_t i = 0; value.is_array() && schema.contains("items") && i < value.size(); ++i) {
    if (std::string fault = FaultOf(value[i], schema["items"], root, fmt::format("{}/{}", place, i)); !fault.empty()) {
      return fault;
    }
  }
  return value.is_object() ? FaultOfMembers(value, schema, root, place) : "";
}

}  // namespace shardc
