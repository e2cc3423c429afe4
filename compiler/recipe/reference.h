// What is generated from the tables of recipe keys: the JSON schema for editors, and docs/recipe.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// schemas/recipe.schema.json: what draft-04 and 2020-12 of JSON Schema have in common, for Taplo and Tombi.
auto RecipeSchema() -> std::string;

/// docs/recipe.md.
auto RecipeReference() -> std::string;

/// A model and its start, as lines of a recipe to begin with.
struct StarterModel {
  /// The lines of [model].
  std::string lines = {};
  /// The section [start]; empty where the model's parameters are not loaded.
  std::string start = {};
  /// The rank of adapters to train; nothing to train the whole model.
  std::optional<int64_t> adapter_rank = {};
  /// Names of its modules that are several projections, which share one A of an adapter.
  std::vector<std::string> fused = {};
  /// True if its files have bf16, so that frozen parameters lose nothing by it.
  bool is_bf16 = false;
};
/// Returns the lines of [model] that name a preset.
auto PresetLines(std::string_view preset) -> std::string;
/// Returns a recipe to begin with. With the lines of a preset it passes the check.
auto StarterRecipe(const StarterModel& model) -> std::string;

/// One key as `shardc help` prints it. `path` is "model.layers" or "init.rule.match". Empty if there is no such key.
auto DescribeKey(std::string_view path) -> std::string;

}  // namespace shardc
