#include "compiler/recipe/config_tree.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/json_reader.h"
#include "compiler/base/mapped.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/text_guard.h"

namespace shardc {

using nlohmann::json;

/// Copies a value that ParseJson made, whose depth is bounded.
static auto NodeOf(const json& value) -> TomlNode {
  TomlNode node;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!member.is_null()) {
        node.entries.push_back({key, {}, NodeOf(member)});
      }
    }
  } else if (value.is_array()) {
    node.kind = TomlNode::Kind::Array;
    for (const json& item : value) {
      node.items.push_back(NodeOf(item));
    }
  } else if (value.is_boolean()) {
    node.kind = TomlNode::Kind::Bool;
    node.boolean = value.get<bool>();
  } else if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    node.kind = TomlNode::Kind::Real;
    node.real = value.get<double>();
  } else if (value.is_number_integer()) {
    node.kind = TomlNode::Kind::Int;
    node.integer = value.get<int64_t>();
  } else if (value.is_number()) {
    node.kind = TomlNode::Kind::Real;
    node.real = value.get<double>();
  } else if (value.is_string()) {
    node.kind = TomlNode::Kind::Text;
    node.text = value.get<std::string>();
  }
  return node;
}

static auto ParseTomlConfig(const std::string& name, std::string text) -> ErrorOr<TomlNode> {
  SourceSet sources;
  const int16_t source = sources.Add(name, std::move(text));
  Diagnostics diagnostics(&sources);
  TomlFault fault;
  auto root = CheckText(sources, source, diagnostics) ? ParseToml(sources, source, fault) : std::nullopt;
  FAIL_IF(!root, ExitCode::RecipeRejected, "{}: {}", name,
          diagnostics.has_errors() ? diagnostics.all().front().text
                                   : fmt::format("line {}: {}", fault.at.line, fault.message));
  return *std::move(root);
}

auto ParseConfig(const std::string& name, std::string text) -> ErrorOr<ConfigTree> {
  FAIL_IF(name.ends_with(".py"), ExitCode::RecipeRejected,
          "{} is Python, which is not run; torchtitan writes what it makes of it as JSON, which is read: start it once "
          "with --debug.save_config_file FILE",
          name);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') {
    ASSIGN_OR_RETURN(auto root, ParseTomlConfig(name, std::move(text)));
    return ConfigTree{.root = std::move(root)};
  }
  FAIL_IF(std::ssize(text) > MaxConfigBytes, ExitCode::RecipeRejected,
          "{} has more than {} bytes; no configuration in JSON is so long", name, MaxConfigBytes);
  const auto value = ParseJson(text, ExitCode::RecipeRejected);
  FAIL_IF(!value, ExitCode::RecipeRejected, "{} is no JSON: {}", name, value.error().message);
  return ConfigTree{.root = NodeOf(*value), .is_json = true};
}

auto EntryOf(const TomlNode& node, std::string_view key) -> const TomlNode* {
  const auto found = std::ranges::find(node.entries, key, &TomlEntry::key);
  return found == node.entries.end() ? nullptr : &found->value;
}

auto TextOf(const TomlNode& node) -> std::string {
  switch (node.kind) {
    case TomlNode::Kind::Text: return WriteToml(node.text);
    case TomlNode::Kind::Int: return WriteToml(node.integer);
    case TomlNode::Kind::Real: return WriteToml(node.real);
    case TomlNode::Kind::Bool: return WriteToml(node.boolean);
    case TomlNode::Kind::Date: return "a date";
    case TomlNode::Kind::Array: return fmt::format("[{}]", fmt::join(Mapped<std::string>(node.items, TextOf), ", "));
    case TomlNode::Kind::Table: return "a table";
  }
  CHECK(false, "kind {}", static_cast<int>(node.kind));
}

}  // namespace shardc
