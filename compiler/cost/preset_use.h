// What a plan says of the preset that its recipe names: the model's name, and the keys that were set beside it.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// A key that the recipe sets beside its preset.
struct SetBesidePreset {
  /// "seq", "init.scheme": a key of [model] stands without its section.
  std::string key;
  std::string value;
  /// The preset's own value; empty if it has none.
  std::string in_preset;
  /// "recipe:4", "--set".
  std::string by;
};

struct PresetUse {
  /// Empty if the recipe names no preset.
  std::string name;
  /// The init scheme, of the preset or set beside it.
  std::string scheme;
  std::vector<SetBesidePreset> set;
};

auto PresetUseOf(const Plan& plan) -> PresetUse;

/// Returns lines of the report, or nothing: the preset, the keys that were set beside it, and those that were assumed.
auto PresetText(const PresetUse& use, const Plan& plan) -> std::string;

/// Returns the origin of an init rule: "recipe:7", "preset llama3-8b", or nothing.
auto RulePlaceText(const PresetUse& use, int32_t recipe_line) -> std::string;

}  // namespace shardc
