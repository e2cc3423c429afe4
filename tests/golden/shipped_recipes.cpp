#include "tests/golden/shipped_recipes.h"

#include <algorithm>
#include <filesystem>

#include "tests/golden/golden_case.h"

namespace shardc {

auto ShippedRecipes() -> SetTexts {
  SetTexts recipes;
  for (const char* folder : {"recipes", "recipes/published"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDC_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".toml") {
        recipes.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
      }
    }
  }
  std::ranges::sort(recipes);
  return recipes;
}

auto PlanOfRecipe(const std::string& recipe, const SetTexts& sets) -> Plan {
  auto plan = CompileRecipeFile(recipe, sets);
  CHECK(plan.ok(), "{}: {}", recipe, plan.error().message);
  return *std::move(plan);
}

auto FitOfShipped(const Plan& plan, const std::string& recipe, const SetTexts& sets) -> FitUse {
  return FitOfRecipe(plan, {.path = recipe, .sets = sets}, ReadRecipeFile(recipe),
                     {.budget = {.bytes = Bytes{int64_t{80} << 30}}});
}

}  // namespace shardc
