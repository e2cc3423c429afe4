#include "compiler/recipe/resolved.h"

#include <map>

#include "compiler/base/preset_rows.h"
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

/// The values that the keys of [model] have where neither the recipe nor a preset sets them, by their paths.
static auto ModelDefaults(const Recipe& recipe) -> std::map<std::string, std::string> {
  Recipe plain;
  plain.model.family = recipe.model.family;
  TakeFamilyDefaults(plain);
  std::map<std::string, std::string> defaults;
  ForEachKey(plain.model, [&](const KeyInfo& key, const auto& leaf) {
    if (key.has_default()) {
      defaults.emplace(fmt::format("model.{}", key.name), WriteToml(leaf.value));
    }
  });
  return defaults;
}

/// The keys that a recipe sets beside its preset, and so chooses.
class BesidePreset {
 public:
  explicit BesidePreset(const Recipe& recipe)
      : preset_(recipe.model.preset.is_set ? PresetNamed(recipe.model.preset->text()) : nullptr) {
    if (preset_ != nullptr) {
      defaults_ = ModelDefaults(recipe);
    }
  }

  /// The line of such a key, or 0. To write the default of a key that the preset leaves out is no choice:
  /// `plan --emit=recipe` writes all of them.
  auto LineOf(const std::string& path, const std::string& value, const SourceRange& at) const -> int32_t {
    const bool is_of_presets = (path.starts_with("model.") && path != "model.preset") || path == "init.scheme";
    if (preset_ == nullptr || !is_of_presets || at.source != 0) {
      return 0;
    }
    const auto found = defaults_.find(path);
    const bool is_default = found != defaults_.end() && found->second == value && ValueIn(*preset_, path).empty();
    return is_default ? 0 : at.line;
  }

 private:
  const PresetRow* preset_;
  std::map<std::string, std::string> defaults_;
};

auto ResolvedKeys(const Recipe& recipe) -> std::vector<ResolvedKey> {
  std::vector<ResolvedKey> keys;
  const BesidePreset beside(recipe);
  ForEachSection(recipe, [&](std::string_view section_name, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (leaf.is_set || TakesDefault(recipe, key)) {
        ResolvedKey& resolved = keys.emplace_back();
        resolved.path = fmt::format("{}.{}", section_name, key.name);
        resolved.value = WriteToml(leaf.value);
        resolved.line_beside_preset = beside.LineOf(resolved.path, resolved.value, leaf.at);
        resolved.is_assumed = recipe.IsAssumed(leaf.at);
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
