#include "compiler/recipe/resolved.h"

#include <map>

#include "compiler/base/preset_rows.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

template <class T>
static auto CopySet(const Located<T>& leaf, std::optional<T>& to) -> void {
  if (leaf.is_set) {
    to = leaf.value;
  }
}

/// Puts the values of leaves for which `takes(key, leaf)` holds into the keys of a plan.
template <class Table, class InPlanForm, class Takes>
static auto CopyLeaves(const Table& table, InPlanForm& keys, const Takes& takes) -> void {
  WalkKeys(
      [&](const KeyInfo& key, const auto& leaf, auto& to) {
        if (!takes(key, leaf)) {
          return;
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(leaf.value)>, FirstStart>) {
          auto& first = to.emplace();
          first.word = leaf->word;
          CopySet(leaf->seed, first.seed);
          CopySet(leaf->continued, first.continued);
          CopySet(leaf->adapter, first.adapter);
          CopySet(leaf->reset, first.reset);
          CopySet(leaf->missing, first.missing);
          CopySet(leaf->unused, first.unused);
        } else {
          to = leaf.value;
        }
      },
      table, keys);
}

template <class Tables, class InPlanTables>
static auto CopyTables(const Tables& tables, InPlanTables& keys) -> void {
  for (const auto& table : tables) {
    CopyLeaves(table, keys.emplace_back(),
               [](const KeyInfo& key, const auto& leaf) { return leaf.is_set || key.has_default(); });
  }
}

auto KeysOf(const Recipe& recipe) -> PlanKeys {
  PlanKeys keys;
  WalkSections(
      [&](std::string_view, std::string_view, const auto& section, auto& of_plan) {
        CopyLeaves(section, of_plan,
                   [&](const KeyInfo& key, const auto& leaf) { return leaf.is_set || TakesDefault(recipe, key); });
        WalkLists([](std::string_view, std::string_view, const auto& tables, auto& to) { CopyTables(tables, to); },
                  section, of_plan);
      },
      recipe, keys);
  return keys;
}

auto ResolveModel(const Recipe& recipe) -> ModelSizes {
  PlanKeys keys;
  CopyLeaves(recipe.model, keys.model, [](const KeyInfo& key, const auto& leaf) {
    return leaf.is_set || key.is_required() || key.has_default();
  });
  CopyTables(recipe.loss.head, keys.loss.head);
  CopyLeaves(recipe.adapter, keys.adapter, [](const KeyInfo&, const auto& leaf) { return leaf.is_set; });
  CopyTables(recipe.adapter.override, keys.adapter.override);
  return ResolveModel(keys);
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

auto ResolvedKeys(const Recipe& recipe) -> std::vector<RecipeEntry> {
  std::vector<RecipeEntry> entries = WriteKeys(KeysOf(recipe));
  const BesidePreset beside(recipe);
  auto entry = entries.begin();
  ForEachSection(recipe, [&](std::string_view section_name, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (entry != entries.end() && entry->key == key.path()) {
        entry->line = beside.LineOf(entry->key, entry->value, leaf.at);
        entry->is_assumed = recipe.IsAssumed(leaf.at);
        ++entry;
      }
    });
    // Lists come after the keys of their section.
    while (entry != entries.end() && entry->key.starts_with(fmt::format("{}.", section_name))) {
      ++entry;
    }
  });
  return entries;
}

}  // namespace shardc
