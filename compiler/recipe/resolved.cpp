#include "compiler/recipe/resolved.h"

#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/visit.h"
#include "compiler/recipe/write.h"

namespace shardc {

/// `{ match = "*", value = 1 }`.
template <class Item>
static auto InlineTable(const Item& item) -> std::string {
  std::string text;
  ForEachKey(item, [&](const KeyInfo& key, const auto& leaf) {
    if (leaf.is_set || key.has_default()) {
      text += fmt::format("{}{} = {}", text.empty() ? "{ " : ", ", key.name, WriteToml(leaf.value));
    }
  });
  return text + " }";
}

static auto LineBesidePreset(const Recipe& recipe, std::string_view section, std::string_view key,
                             const SourceRange& at) -> int32_t {
  const bool is_of_presets = (section == "model" && key != "preset") || (section == "init" && key == "scheme");
  return is_of_presets && recipe.model.preset.is_set && at.source == 0 ? at.line : 0;
}

auto ResolvedKeys(const Recipe& recipe) -> std::vector<ResolvedKey> {
  std::vector<ResolvedKey> keys;
  ForEachSection(recipe, [&](std::string_view section_name, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (leaf.is_set || TakesDefault(recipe, key)) {
        keys.push_back({.path = fmt::format("{}.{}", section_name, key.name),
                        .value = WriteToml(leaf.value),
                        .line_beside_preset = LineBesidePreset(recipe, section_name, key.name, leaf.at),
                        .is_assumed = recipe.IsAssumed(leaf.at)});
      }
    });
    ForEachList(section, [&](std::string_view list, std::string_view, const auto& items) {
      std::string text;
      for (const auto& item : items) {
        text += (text.empty() ? "[" : ", ") + InlineTable(item);
      }
      if (!items.empty()) {
        keys.push_back({.path = fmt::format("{}.{}", section_name, list), .value = text + "]"});
      }
    });
  });
  return keys;
}

}  // namespace shardc
