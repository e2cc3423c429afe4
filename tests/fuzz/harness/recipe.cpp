// A recipe of any bytes: it is read and checked, or refused with diagnostics that lie in its text; nothing crashes.
// What is accepted is small enough to be compiled by none here: plans have a harness of their own.
#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/check/check_recipe.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/recipe.h"

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe =
      ReadRecipe("recipe.toml", std::string(reinterpret_cast<const char*>(data), size), {}, sources, diagnostics);
  if (recipe.ok()) {
    CheckRecipe(*recipe, diagnostics);
  }
  const std::string text = RenderText(diagnostics, {});
  CHECK(recipe.ok() || !text.empty(), "refused without a word");
  return 0;
}
