// shardc check RECIPE: every error, and nothing else. The passes run too, as some rules need the model's parameters.

#include <memory>

#include "compiler/base/printable.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"

namespace shardc {

namespace {

struct CheckOptions {
  RecipeOptions recipe;
  std::string format = "text";
};

}  // namespace

static auto RunCheck(const CheckOptions& options) -> ExitCode {
  RecipeSource source(options.recipe);
  const auto plan = source.LoadAndCompile({});
  Status written = Success{};
  if (options.format == "json") {
    written = WriteResult(RenderJson(source.diagnostics()));
  } else {
    source.PrintDiagnostics();
    if (plan) {
      written = WriteResult(fmt::format("{}: ok\n", PrintableLine(options.recipe.path)));
    }
  }
  return plan ? ExitCodeOf(written) : ReportError(plan.error());
}

auto DeclareCheck(CommandOptions& options) -> Action {
  const auto values = std::make_shared<CheckOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Choice("--format", values->format, {"text", "json"}, "text on stderr, or JSON Lines on stdout");
  return [values] { return RunCheck(*values); };
}

}  // namespace shardc
