#include "tests/recipe/read_text.h"

namespace shardc {

auto MinimalText(const std::string& extra) -> std::string {
  return "[model]\nfamily = \"llama\"\nlayers = 2\nhidden = 8\nheads = 2\nffn = 16\nvocab = 32\nseq = 8\n"
         "[[init.rule]]\nmatch = \"*\"\nvalue = 0\n[optimizer]\nlr = 1e-3\n[data]\ntokens = [\"t.bin\"]\n"
         "[batch]\nmicro = 1\n[train]\nsteps = 10\n" +
         extra;
}

auto ReadResult::places() const -> std::vector<std::string> {
  std::vector<std::string> texts;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    texts.push_back(fmt::format("{} {}:{}+{}", RowOf(diagnostic.kind).name, diagnostic.at.line, diagnostic.at.column,
                                diagnostic.at.length));
  }
  return texts;
}

auto ReadRecipeText(const std::string& text, const std::vector<std::string>& overrides, ReadResult& result) -> void {
  auto recipe = ReadRecipe("recipe.toml", text, overrides, result.sources, result.diagnostics);
  result.ok = recipe.ok();
  if (recipe) {
    result.recipe = *recipe;
  }
}

}  // namespace shardc
