// What is generated from the tables of recipe keys: the JSON schema for editors, and docs/recipe.md.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// schemas/recipe.schema.json: what draft-04 and 2020-12 of JSON Schema have in common, for Taplo and Tombi.
auto RecipeSchema() -> std::string;

/// docs/recipe.md.
auto RecipeReference() -> std::string;

/// A recipe to begin with, for a model of schemas/presets.def; it passes the check.
auto StarterRecipe(std::string_view preset) -> std::string;
/// Returns one with these lines of [model], and whole sections at its end.
auto StarterRecipe(std::string_view model, std::string_view start) -> std::string;

/// One key as `shardc help` prints it. `path` is "model.layers" or "init.rule.match". Empty if there is no such key.
auto DescribeKey(std::string_view path) -> std::string;

}  // namespace shardc
