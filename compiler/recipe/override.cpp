// An override is parsed as TOML; if that fails and the value does not look like TOML on purpose (a quote, a bracket),
// the value is taken as bare text.

#include "compiler/recipe/override.h"

#include <algorithm>

#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/text_guard.h"

namespace shardc {

static auto IsKeyCharacter(char c) -> bool {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static auto Trimmed(std::string_view text, size_t& offset) -> std::string_view {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  offset += begin;
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// `dp=2` to "write --set mesh.dp=2"; empty if no section has such a key.
static auto HelpOnBareKey(std::string_view text, std::string_view key) -> std::string {
  std::string help;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.name == key && row.list.empty()) {
      help += fmt::format("{}--set {}.{}", help.empty() ? "write " : " or ", row.section, text);
    }
  }
  return help;
}

auto ParseOverride(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode> {
  const std::string_view text = sources[source].text;
  const SourceRange whole{source, 1, 1, std::max(1, static_cast<int32_t>(text.size()))};
  const auto reject = [&](const SourceRange& at, const std::string& message, const std::string& help = "") {
    diagnostics.Build(at, DiagnosticKind::BadOverride, message).Help(help).Emit();
    return std::nullopt;
  };
  if (!CheckText(sources, source, diagnostics)) {
    return std::nullopt;
  }
  const size_t equals = text.find('=');
  size_t key_offset = 0;
  const std::string_view path = Trimmed(text.substr(0, equals), key_offset);
  const size_t dot = path.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot == 0 || dot + 1 == path.size()) {
    return reject(whole, "expected section.key=value",
                  equals == std::string_view::npos ? "" : HelpOnBareKey(text.substr(key_offset), path));
  }
  if (text.find_first_of("\r\n") != std::string_view::npos) {
    return reject({source, 1, 1, 1}, "more than one line; one --set gives one key");
  }
  const std::string_view section = path.substr(0, dot);
  const std::string_view key = path.substr(dot + 1);
  const auto range = [&](size_t begin, size_t size) {
    return SourceRange{source, 1, static_cast<int32_t>(begin) + 1, std::max(1, static_cast<int32_t>(size))};
  };
  if (key.find('.') != std::string_view::npos) {
    return reject(
        range(key_offset, path.size()),
        fmt::format("`{}` has more parts than a section and a key; a list of tables is set as a whole", path));
  }
  if (!std::all_of(section.begin(), section.end(), IsKeyCharacter) ||
      !std::all_of(key.begin(), key.end(), IsKeyCharacter)) {
    return reject(range(key_offset, path.size()), fmt::format("`{}` is not of the form section.key", path));
  }
  size_t value_offset = equals + 1;
  const std::string_view raw = Trimmed(text.substr(equals + 1), value_offset);

  TomlNode value;
  TomlFault fault;
  if (const auto root = ParseToml(sources, source, fault); root) {
    value = root->entries.at(0).value.entries.at(0).value;
  } else if (!raw.empty() && std::string_view("\"'[{").find(raw.front()) != std::string_view::npos) {
    return reject(fault.at, fmt::format("the value is not TOML: {}", fault.message));
  } else {
    value.kind = TomlNode::Kind::Text;
    value.text = raw;
    value.at = range(value_offset, raw.size());
  }
  value.raw = raw;

  TomlNode table;
  table.at = range(key_offset, section.size());
  table.entries.push_back({std::string(key), range(key_offset + dot + 1, key.size()), std::move(value)});
  TomlNode root;
  root.at = whole;
  root.entries.push_back({std::string(section), range(key_offset, section.size()), std::move(table)});
  return root;
}

auto TakeOut(const SourceSet& sources, int16_t source, TomlNode& recipe, Diagnostics& diagnostics) -> void {
  const std::string_view path = sources[source].text;
  const std::vector<std::string> known = KeyPaths();
  if (std::ranges::find(known, path) == known.end()) {
    const std::string closest = ClosestWord(path, {known.begin(), known.end()});
    diagnostics
        .Build({source, 1, 1, std::max(1, static_cast<int32_t>(path.size()))}, DiagnosticKind::BadOverride,
               fmt::format("`{}` is no key of a recipe", path))
        .Help(closest.empty() ? "write a section and a key: --unset data.eval"
                              : fmt::format("did you mean --unset {}?", closest))
        .Emit();
    return;
  }
  const size_t dot = path.find('.');
  for (TomlEntry& section : recipe.entries) {
    if (section.key == path.substr(0, dot)) {
      std::erase_if(section.value.entries, [&](const TomlEntry& entry) { return entry.key == path.substr(dot + 1); });
    }
  }
}

}  // namespace shardc
