// shardc check RECIPE|PLAN: reports errors and does nothing else. For a recipe the passes run too, because some rules
// need the model's parameters; a plan is judged as `shardc run` judges it.

#include <memory>

#include "compiler/base/printable.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/ops/read_plan.h"

namespace shardc {

namespace {

struct CheckOptions {
  RecipeOptions recipe;
  std::string format = "text";
};

}  // namespace

static auto Answer(const CheckOptions& options, const RecipeSource& source, const Status& judged) -> ExitCode {
  if (options.format == "json") {
    const Status written = WriteResult(RenderJson(source.diagnostics()));
    return judged ? ExitCodeOf(written) : ReportError(judged.error());
  }
  if (!judged) {
    return ReportError(judged.error());
  }
  return ExitCodeOf(
      WriteResult(fmt::format("{}: ok{}\n", PrintableLine(options.recipe.path),
                              source.has_assumed() ? " to plan; `shardc run` needs what was assumed" : "")));
}

static auto RunCheck(const CheckOptions& options) -> ExitCode {
  NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    if (const Status fits = RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}); !fits) {
      return ReportError(fits.error());
    }
    RecipeSource source(options.recipe);
    auto plan = source.ReadPlan(*named.text);
    if (const Status has_tokens = plan ? CheckHasTokens(options.recipe.path, *plan) : Status(Success{}); !has_tokens) {
      return Answer(options, source, has_tokens);
    }
    if (plan) {
      return Answer(options, source, Success{});
    }
    // In JSON each fault is a line of its own.
    return Answer(options, source, options.format == "json" ? Error{plan.error().code, ""} : plan.error());
  }
  RecipeSource source(options.recipe, std::move(named.text), LeftOut::Assume);
  const auto plan = source.LoadAndCompile({});
  if (options.format == "text") {
    source.PrintDiagnostics();
  }
  return Answer(options, source, plan ? Status(Success{}) : plan.error());
}

auto DeclareCheck(CommandOptions& options) -> Action {
  const auto values = std::make_shared<CheckOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Choice("--format", values->format, {"text", "json"}, "text on stderr, or JSON Lines on stdout");
  return [values] { return RunCheck(*values); };
}

}  // namespace shardc
