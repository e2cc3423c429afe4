// Recipes that users are given, planned, and with the answers of --fit.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/fit.h"

namespace shardc {

using SetTexts = std::vector<std::string>;

inline constexpr const char* RecipeOf8B = "recipes/published/llama3_8b.toml";
inline constexpr const char* RecipeOf8B4x2 = "recipes/published/llama3_8b_4x2.toml";
inline constexpr const char* RecipeOfQuickstart = "recipes/quickstart.toml";

/// Returns the paths of the recipes, sorted.
auto ShippedRecipes() -> SetTexts;
auto PlanOfRecipe(const std::string& recipe, const SetTexts& sets = {}) -> Plan;
/// Returns the answers for ranks of 80 GiB.
auto FitOfShipped(const Plan& plan, const std::string& recipe, const SetTexts& sets = {}) -> FitUse;

}  // namespace shardc
