// Reads, checks and compiles a recipe; each stage runs only if the one before found no error.

#include "compiler/driver/recipe_source.h"

#include "compiler/base/files.h"
#include "compiler/check/check_recipe.h"
#include "compiler/driver/output.h"

namespace shardc {

auto DeclareRecipeOptions(CommandOptions& options, RecipeOptions& values, const std::string& positional) -> void {
  options.Positional(positional, values.path, positional == "RECIPE" ? "recipe (TOML)" : "recipe, or plan file");
  options.Repeated("--set", values.sets, "SECTION.KEY=VALUE", "put a key in place of the recipe's; repeatable");
  options.Flag("--strict", values.is_strict, "treat warnings as errors");
  options.Choice("--color", values.color, {"auto", "always", "never"}, "colour of messages");
}

RecipeSource::RecipeSource(const RecipeOptions& options, std::optional<std::string> text)
    : options_(options), text_(std::move(text)), diagnostics_(&sources_) {
  diagnostics_.set_strict(options.is_strict);
}

auto RecipeSource::Load() -> ErrorOr<Recipe> {
  // Enough to say how large a file is that is too large; not what /dev/zero holds.
  constexpr size_t read_limit = size_t{64} << 20;
  const Error rejected{ExitCode::RecipeRejected, ""};
  SetCheckContext(fmt::format("reading {}", options_.path));
  auto text = text_ ? ErrorOr<std::string>(*std::exchange(text_, std::nullopt)) : ReadFile(options_.path, read_limit);
  if (!text) {
    diagnostics_.Build({}, DiagnosticKind::FileUnreadable, options_.path, text.error().message).Emit();
    return Error{ExitCode::Usage, ""};
  }
  auto recipe = ReadRecipe(options_.path, *std::move(text), options_.sets, sources_, diagnostics_);
  if (!recipe) {
    return recipe.error();
  }
  SetCheckContext(fmt::format("checking {}", options_.path));
  CheckRecipe(*recipe, diagnostics_);
  if (diagnostics_.has_errors()) {
    return rejected;
  }
  return recipe;
}

auto RecipeSource::LoadAndCompile(const PipelineOptions& options) -> ErrorOr<Plan> {
  const auto recipe = Load();
  if (!recipe) {
    return recipe.error();
  }
  auto plan = Compile(*recipe, options, diagnostics_);
  if (plan && diagnostics_.has_errors()) {
    return Error{ExitCode::RecipeRejected, ""};
  }
  return plan;
}

auto RecipeSource::PrintDiagnostics() const -> void {
  const RenderOptions render{.color = UseColor(ColorChoiceFromText(options_.color))};
  const std::string text = RenderText(diagnostics_, render);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

auto IsPlanText(std::string_view text) -> bool { return text.starts_with("plan version="); }

}  // namespace shardc
