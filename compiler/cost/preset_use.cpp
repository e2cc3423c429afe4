#include "compiler/cost/preset_use.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/preset_rows.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/plan/header.h"

namespace shardc {

static auto IsSetByOption(const Plan& plan, const std::string& key) -> bool {
  return std::ranges::any_of(plan.overrides, [&](const std::string& text) {
    return text.starts_with(key) && text.substr(key.size()).starts_with('=');
  });
}

auto PresetUseOf(const Plan& plan) -> PresetUse {
  constexpr std::string_view Model = "model.";
  PresetUse use;
  const PresetRow* preset = PresetOf(plan);
  if (preset == nullptr) {
    return use;
  }
  use.name = preset->name;
  const auto scheme = KeysOf(plan).init.scheme;
  use.scheme = scheme ? scheme->text() : "";
  for (const RecipeEntry& entry : plan.recipe) {
    const bool is_of_model = entry.key.starts_with(Model) && entry.key != "model.preset";
    if (!is_of_model && entry.key != "init.scheme") {
      continue;
    }
    // --set comes after the recipe.
    const std::string by = IsSetByOption(plan, entry.key) ? "--set"
                           : entry.line > 0               ? fmt::format("recipe:{}", entry.line)
                                                          : "";
    if (!by.empty()) {
      use.set.push_back({.key = is_of_model ? entry.key.substr(Model.size()) : entry.key,
                         .value = entry.value,
                         .in_preset = ValueIn(*preset, entry.key),
                         .by = by});
    }
  }
  return use;
}

/// Returns the keys that a run asks for, with the values that are assumed here.
static auto AssumedText(const Plan& plan) -> std::string {
  std::string text;
  for (const RecipeEntry& entry : plan.recipe) {
    if (entry.is_assumed) {
      text += fmt::format("            {} = {}\n", entry.key, entry.value);
    }
  }
  return text.empty() ? "" : "assumed     for planning; `shardc run` asks for these keys in the recipe:\n" + text;
}

auto PresetText(const PresetUse& use, const Plan& plan) -> std::string {
  if (use.name.empty()) {
    return "";
  }
  std::string text = fmt::format("preset      {}; init.scheme {}", use.name, use.scheme);
  std::vector<std::string> as_in_it;
  for (const SetBesidePreset& key : use.set) {
    if (key.value == key.in_preset) {
      as_in_it.push_back(key.key);
      continue;
    }
    text += fmt::format("\n            {} {} set by {}, {}", key.key, key.value, key.by,
                        key.in_preset.empty() ? "which the preset does not set"
                                              : fmt::format("where the preset has {}", key.in_preset));
  }
  text += "\n";
  if (!as_in_it.empty()) {
    text += Wrapped(fmt::format("            set as in the preset: {}", fmt::join(as_in_it, ", ")), 12);
  }
  return text + AssumedText(plan);
}

auto RulePlaceText(const PresetUse& use, int32_t recipe_line) -> std::string {
  if (recipe_line > 0) {
    return fmt::format("recipe:{}", recipe_line);
  }
  const bool is_of_preset = !use.name.empty() && std::ranges::none_of(use.set, [](const SetBesidePreset& key) {
    return key.key == "init.scheme";
  });
  return is_of_preset ? fmt::format("preset {}", use.name) : "";
}

}  // namespace shardc
