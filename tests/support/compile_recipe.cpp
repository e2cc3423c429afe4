#include "tests/support/compile_recipe.h"

#include "compiler/check/check_recipe.h"
#include "compiler/diag/diagnostics.h"

namespace shardc {

auto CheckedRecipe(const std::string& text) -> Recipe {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe = ReadRecipe("made.toml", text, {}, sources, diagnostics);
  if (recipe.ok()) {
    CheckRecipe(*recipe, diagnostics);
  }
  CHECK(!diagnostics.has_errors(), "{}{}", text, RenderText(diagnostics, {}));
  return *recipe;
}

auto CompileRecipe(const std::string& path, const std::string& text, const std::vector<std::string>& sets,
                   std::optional<PassKind> stop_after) -> CompiledRecipe {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe = ReadRecipe(path, text, sets, sources, diagnostics);
  CHECK(recipe.ok(), "{}", RenderText(diagnostics, {}));
  CheckRecipe(*recipe, diagnostics);
  CHECK(!diagnostics.has_errors(), "{}", RenderText(diagnostics, {}));
  auto plan = Compile(*recipe, {.stop_after = stop_after}, diagnostics);
  CHECK(plan.ok(), "{}\n{}", plan.error().message, RenderText(diagnostics, {}));
  return {*recipe, *std::move(plan), RenderText(diagnostics, {})};
}

}  // namespace shardc
